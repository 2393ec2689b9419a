"""Recorded workspaces, judged by the tests as they are now; no policy, no turns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from anyio import to_thread

from codeenv.grading import box_spec, grade
from codeenv.grading.verdict import Outcome
from codeenv.record import Recording, Recordings
from codeenv.record.folder import append
from codeenv.record.recorder import plain
from codeenv.record.schema import End, Judged
from codeenv.record.workspace import workspace_from
from codeenv.replay.differences import tests_moved
from codeenv.replay.play import BY_THE_CLOCK, settings_of, spec_of
from codeenv.sandbox.api import SandboxProvider
from codeenv.task import Task

LIMITED = ("turns", *BY_THE_CLOCK)
"""Ends that make an outcome `limit`, whatever the tests say."""


class NotGraded(ValueError):
    """There is nothing to judge; the message says why."""


@dataclass(frozen=True)
class Regraded:
    """`before` is None where there was no verdict. No message of a test is kept that the policy might not see."""

    recording: Recording
    task: Task
    before: Judged | None
    after: Judged

    @property
    def outcome_before(self) -> Outcome | None:
        return self.recording.end.outcome if self.recording.end else None

    @property
    def moved(self) -> dict[str, tuple[str, str]]:
        """By id, of the tests that did not come out the same: passed, failed, not there."""
        return tests_moved(self.before, self.after) if self.before else {}

    @property
    def changed(self) -> bool:
        before = self.before
        return before is None or bool(self.moved) or self._said(before) != self._said(self.after)

    @staticmethod
    def _said(judged: Judged) -> tuple[str, float]:
        return judged.outcome, judged.reward


def gradable(recording: Recording) -> None:
    """:raises NotGraded: what is missing."""
    end = recording.end
    if end and end.outcome == "expired":
        raise NotGraded("the box expired, and the workspace with it")
    if recording.left is None:
        verdict = end.verdict if end else None
        why = (verdict and verdict.reason) or (end and end.error and end.error.message) or "it was not judged"
        raise NotGraded(f"there is no workspace: {why}")
    if recording.left.missing:
        raise NotGraded(f"the workspace was not recorded whole: {recording.left.missing}")


async def regrade(recording: Recording, task: Task, provider: SandboxProvider) -> Regraded:
    """Judge what was left. An outcome `limit` stays one, with the reward that the tests give; an episode without a
    verdict whose workspace is there, as after a failure of the grader's box, gets one.

    :raises NotGraded: there is no workspace. :raises SandboxError: the grader's box could not be made, or broke.
    :raises RecordingError: the recording is of settings that are none of ours. :raises UnsupportedSpec: the sandbox
        cannot provide such a box.
    """
    gradable(recording)
    assert recording.left is not None
    settings = settings_of(recording)
    spec = box_spec(task, spec_of(recording))
    await to_thread.run_sync(provider.check, spec)
    left = await to_thread.run_sync(workspace_from, task, recording.left)
    verdict = await grade(task, left, provider, spec, retries=settings.grading_retries)
    before = recording.end.verdict if recording.end else None
    over = recording.end.over if recording.end else recording.turns[-1].over if recording.turns else ""
    limited = over in LIMITED
    reason = verdict.reason or (before.reason if before and limited else "")
    judged = verdict.model_copy(update={"outcome": "limit" if limited else verdict.outcome, "reason": reason})
    return Regraded(recording, task, before, Judged.of(judged, settings.feedback))


def keep(recording: Recording, folder: Recordings, regraded: Regraded | None) -> Path:
    """Write a copy of the recording into another folder, with the present task's digest and verdict, and in its labels
    `regraded`: the digest and the outcome of before. Without `regraded` the copy is as it was. Blocks.

    :raises FileExistsError: the folder has a file of that name.
    """
    opening, end = recording.opening, recording.end
    if regraded is not None:
        task, was = opening.task, {"digest": opening.task.digest, "outcome": regraded.outcome_before}
        present = task.model_copy(update={"digest": regraded.task.digest})
        opening = opening.model_copy(update={"task": present, "labels": opening.labels | {"regraded": was}})
        verdict = {"outcome": regraded.after.outcome, "verdict": regraded.after, "error": None}
        seconds, over = recording.summary.seconds, recording.turns[-1].over if recording.turns else ""
        end = (end or End(seconds=seconds, outcome=None, over=over, tally={})).model_copy(update=verdict)
    path = folder.folder / recording.path.name
    lines = [opening, recording.start, *recording.turns, recording.left, end]
    for number, line in enumerate(line for line in lines if line is not None):
        append(path, plain(line), new=number == 0)
    if end is not None:
        folder.note(replace(recording, path=path, opening=opening, end=end).summary)
    return path
