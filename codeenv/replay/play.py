"""Recorded turns in a fresh box: an episode played again, or gone on with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from anyio import to_thread
from pydantic import BaseModel, ValidationError

from codeenv.episode import Episode, EpisodeSettings
from codeenv.played import Played
from codeenv.prompts import Prompts
from codeenv.record import Recording, RecordingError, Recordings
from codeenv.record.schema import Fork, Turn
from codeenv.replay.difference import END, Difference
from codeenv.replay.differences import left_differences, turn_differences, verdict_differences
from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.task import Task

BY_THE_CLOCK = ("time", "stopped")
"""Ends that come from outside: from a clock, or from the caller's limits. A replay stops where they came."""

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Replayed:
    """`after` is the replay's own recording, of as many turns as were played; `notes` say what was not compared, and
    what else was not the same from the start."""

    before: Recording
    after: Recording
    differences: list[Difference]
    notes: list[str]
    judged: bool
    """Whether there was a verdict to compare."""

    @property
    def same(self) -> bool:
        """But for times."""
        return all(difference.times for difference in self.differences)


def settings_of(recording: Recording) -> EpisodeSettings:
    """:raises RecordingError: it was played with settings that are none of ours; names them."""
    return _valid(EpisodeSettings.model_validate, recording.opening.settings, recording, "settings")


def spec_of(recording: Recording) -> SandboxSpec:
    """Without the variables of its environment, whose values are not recorded. :raises RecordingError: as above."""
    return _valid(SandboxSpec.model_validate, recording.opening.spec | {"env": {}}, recording, "spec")


async def replay(
    recording: Recording,
    task: Task,
    provider: SandboxProvider,
    *,
    prompts: Prompts | None = None,
    record: Recordings | None = None,
    given: bool = False,
) -> Replayed:
    """Play the recorded calls in a fresh box, by the recorded settings, and say what differs.

    Nothing waits for the policy: the clock is not the same. Where it had a part in the episode's end, that is not
    compared, and a note says so.

    :param record: where the replay's recording is kept; by default it is gone afterwards. :param given: whether
        `run_tests` is answered with the recorded verdicts, which costs no grading.
    :raises SandboxError: the box could not be made or was lost: nothing is known. :raises RecordingError: the recording
        is of settings that are none of ours. :raises UnsupportedSpec: the sandbox cannot provide such a box.
    """
    settings, spec = settings_of(recording), spec_of(recording)
    await to_thread.run_sync(provider.check, spec)
    turns, notes = _playable(recording)
    verdict = recording.end.verdict if recording.end else None
    judged = verdict is not None and verdict.outcome != "expired" and len(turns) == len(recording.turns)
    with ExitStack() as stack:
        folder = record
        if folder is None:
            folder = Recordings(stack.enter_context(TemporaryDirectory(prefix="codeenv-replay-")))
        episode = await Episode.open(
            task,
            provider,
            settings,
            spec=spec,
            prompts=prompts,
            record=folder,
            prompt=recording.start.prompt if recording.start else None,
            labels={"policy": recording.opening.policy, "replay_of": recording.opening.id},
        )
        try:
            for turn in turns:
                if episode.over:
                    break
                await episode.play(Played.of(turn), given=given)
            if judged:
                if not episode.over:
                    episode.stop()
                await episode.finish()
        finally:
            await episode.close()
        assert episode.recorder is not None
        after = await to_thread.run_sync(Recording.load, episode.recorder.path)
    return await to_thread.run_sync(_compared, recording, after, turns, notes, judged)


async def fork_of(
    recording: Recording,
    task: Task,
    provider: SandboxProvider,
    turn: int,
    *,
    prompts: Prompts | None = None,
    record: Recordings | str | Path | None = None,
) -> Episode:
    """An episode that goes on from the end of a recorded turn (0: the start), which the caller must `close()`: as
    `Episode.fork` by replay.

    :raises ValueError: there is no such turn. :raises SandboxError, RecordingError, UnsupportedSpec: as `replay`.
    """
    if not 0 <= turn <= len(recording.turns):
        raise ValueError(f"turn: must be 0 to {len(recording.turns)}, the turns of {recording.path}, not {turn}")
    settings, spec = settings_of(recording), spec_of(recording)
    await to_thread.run_sync(provider.check, spec)
    episode = await Episode.open(
        task,
        provider,
        settings,
        spec=spec,
        prompts=prompts,
        record=Recordings(record) if isinstance(record, str | Path) else record,
        prompt=recording.start.prompt if recording.start else None,
        labels={**recording.opening.labels, "policy": recording.opening.policy},
        fork=Fork(id=recording.opening.id, turn=turn),
    )
    try:
        for played in recording.turns[:turn]:
            await episode.play(Played.of(played), given=True)
    except BaseException:
        await episode.close()
        raise
    return episode


def _playable(recording: Recording) -> tuple[list[Turn], list[str]]:
    """The turns that can be played again, and what has to be said."""
    turns, notes = [*recording.turns], list[str]()
    end = recording.end
    if recording.cut:
        notes.append(f"the file ends early: {recording.cut}")
    if recording.start is None:
        notes.append("its box was never made: there is nothing to play")
    if turns and turns[-1].over == "expired":
        notes.append(f"turn {turns[-1].turn}, in which the box reached its time to live, is not played again")
        turns.pop()
    elif turns and turns[-1].error:
        notes.append(f"turn {turns[-1].turn} was broken off ({turns[-1].error}): the calls before that are compared")
    if end is None:
        notes.append("it has no end, so there is no verdict to compare")
    elif end.verdict is None:
        why = end.error.message if end.error else "it was closed before it was judged"
        notes.append(f"it has no verdict to compare: {why}")
    elif end.verdict.outcome == "expired":
        notes.append("the box expired before it could be judged, so there is no verdict to compare")
    if end is not None and end.over in BY_THE_CLOCK:
        notes.append(f"it was ended from outside ({end.over}), after its last turn; the replay ends there too")
    if recording.opening.spec.get("env"):
        names = ", ".join(recording.opening.spec["env"])
        notes.append(f"variables of its box's environment were not recorded: {names}")
    return turns, notes


def _compared(before: Recording, after: Recording, turns: list[Turn], notes: list[str], judged: bool) -> Replayed:
    one, other = before.opening, after.opening
    if one.sandbox != other.sandbox:
        notes.append(f"played on {one.sandbox}, replayed on {other.sandbox}")
    if one.task.digest != other.task.digest:
        notes.append("the task is another than when it was played")
    changed = [f"{k} {v} -> {other.versions.get(k)}" for k, v in one.versions.items() if other.versions.get(k) != v]
    if changed:
        notes.append(f"versions: {', '.join(changed)}")
    found: list[Difference] = []
    for a, b in zip(turns, after.turns, strict=False):
        found += _but_for_the_clock(turn_differences(a, b), a)
    if len(after.turns) < len(turns):
        last, over = len(after.turns), after.turns[-1].over if after.turns else ""
        found.append(Difference(last + 1, "turn", "there", f"the episode was over before ({over})"))
    if judged and before.end and after.end:
        outside = before.end.over in BY_THE_CLOCK
        if before.end.over != after.end.over and not outside:
            found.append(Difference(END, "over", before.end.over, after.end.over))
        found += left_differences(before.left, after.left)
        verdicts = verdict_differences(END, before.end.verdict, after.end.verdict)
        found += [each for each in verdicts if not (outside and each.what == "reason")]
    return Replayed(before, after, found, notes, judged)


def _but_for_the_clock(found: list[Difference], turn: Turn) -> list[Difference]:
    """The replay of a turn in which time ran out is not over, as nobody waited, and is told which calls came late."""
    return [each for each in found if not (turn.over in BY_THE_CLOCK and each.what in ("over", "fault"))]


def _valid(validate: Callable[[Any], M], value: Any, recording: Recording, what: str) -> M:
    try:
        return validate(value)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        text = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        raise RecordingError(f"{recording.path}, line 1: {what}: {text}") from error
