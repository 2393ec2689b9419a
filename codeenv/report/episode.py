"""An episode as a section of the page: what it came to, its time as a picture, its turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codeenv.record import Recording
from codeenv.report.figures import finite
from codeenv.report.page import piece


@dataclass(frozen=True)
class Span:
    """On the strip of an episode's time, from `start` for `length`, both of 1000. `turn` is 0 where it is no turn's."""

    kind: str
    start: float
    length: float
    seconds: float
    turn: int = 0
    bad: bool = False


def section(recording: Recording, anchor: str, forks: Mapping[str, str], limit: int) -> str:
    """Its HTML, of about `limit` bytes at most: of turns that would go beyond, it says that they are left out.

    :param forks: the anchors of the episodes that are in the page, by their ids.
    """
    given: dict[str, Any] = {"recording": recording, "summary": recording.summary, "anchor": anchor}
    foot = piece("episode_foot", **given)
    turns: list[str] = []
    left = limit - len(foot.encode())
    for turn in recording.turns:
        made = piece("episode_turn", turn=turn, anchor=anchor)
        left -= len(made.encode())
        if left < 0:
            break
        turns.append(made)
    head = piece("episode_head", **given, forks=forks, spans=spans(recording), shown=len(turns))
    return "".join([head, *turns, foot])


def spans(recording: Recording) -> list[Span]:
    """Where an episode's time went, in order: the box, the policy, its calls, the judging."""
    found = list(_spans(recording))
    whole = max((start + length for _, start, length, *_ in found), default=0.0) or 1.0
    return [
        Span(kind, round(start / whole * 1000, 2), max(round(length / whole * 1000, 2), 0.5), length, turn, bad)
        for kind, start, length, turn, bad in found
    ]


def _spans(recording: Recording) -> Iterator[tuple[str, float, float, int, bool]]:
    at = 0.0
    if recording.start:
        at = finite(recording.start.seconds)
        yield "box", 0.0, at, 0, False
    for turn in recording.turns:
        came, ran, waited = finite(turn.at), finite(turn.seconds), finite(turn.waited)
        yield "model", max(came - waited, 0.0), waited, turn.turn, False
        failed = any(result.failed for result in turn.results) or bool(turn.error)
        kind = "grading" if any(result.tool == "run_tests" for result in turn.results) else "sandbox"
        yield kind, came, ran, turn.turn, failed
        at = came + ran
    if recording.end and (left := finite(recording.end.seconds) - at) > 0:
        yield "grading" if recording.end.verdict else "other", at, left, 0, False
