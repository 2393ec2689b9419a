"""Recordings: what happened in an episode, one JSONL file each, a folder a run."""

from codeenv.record.folder import Recordings, summaries
from codeenv.record.reading import Recording, RecordingError
from codeenv.record.schema import Said, Summary

__all__ = ["Recording", "RecordingError", "Recordings", "Said", "Summary", "summaries"]
