"""What `codeenv replay` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from codeenv.cli.recordings import heading, printable, say, say_diff, verdict_cell
from codeenv.cli.terminal import console, table

if TYPE_CHECKING:
    from codeenv.record.schema import Judged, Turn
    from codeenv.replay import Difference, Replayed

DETAILS = 20  # differences of a recording that are shown line by line
CALLS = 4  # of a turn that are named


@dataclass(frozen=True)
class Replay:
    """One replay without the recordings themselves, which a folder may have ten thousand of."""

    file: str
    heading: str
    task: str
    same: bool
    judged: bool
    differences: list[Difference]
    notes: list[str]
    verdicts: tuple[dict[str, Any] | None, dict[str, Any] | None]
    verdict: str
    """Of both, for a table."""
    seconds: tuple[float | None, float | None]
    turns: list[tuple[int, str, str, float, float | None]]
    """Number, calls, exit codes, seconds and those of the replay, None where it was not played."""

    @classmethod
    def of(cls, done: Replayed) -> Replay:
        before, after = done.before, done.after
        ends = before.end, after.end
        verdicts = [end.verdict if end else None for end in ends]
        now: dict[int, float] = {turn.turn: turn.seconds for turn in after.turns}
        return cls(
            file=str(before.path),
            heading=heading(before),
            task=before.opening.task.id,
            same=done.same,
            judged=done.judged,
            differences=done.differences,
            notes=done.notes,
            verdicts=(_plain(verdicts[0]), _plain(verdicts[1]) if done.judged else None),
            verdict=_verdict(*verdicts, judged=done.judged),
            seconds=(ends[0].seconds if ends[0] else None, ends[1].seconds if ends[1] else None),
            turns=[(turn.turn, *_calls(turn), turn.seconds, now.get(turn.turn)) for turn in before.turns],
        )

    def plain(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "file": self.file,
            "task": self.task,
            "same": self.same,
            "judged": self.judged,
            "verdict_before": self.verdicts[0],
            "verdict_after": self.verdicts[1],
            "turns": len(self.turns),
            "turns_played": sum(turn[-1] is not None for turn in self.turns),
            "notes": self.notes,
            "differences": [asdict(difference) for difference in self.differences],
        }


def show(replay: Replay) -> None:
    """Turn by turn."""
    from rich.markup import escape

    say(replay.heading)
    shown = table(">turn", "calls", "exit", ">seconds", ">now", "what differs")
    for number, calls, codes, seconds, now in replay.turns:
        what = _what([each for each in replay.differences if each.turn == number])
        row = [str(number), escape(printable(calls)), codes, f"{seconds:.2f}", _seconds(now)]
        shown.add_row(*row, what if now is not None else "[yellow]not played[/]")
    console().print(shown)
    real = [each for each in replay.differences if not each.times]
    for difference in real[:DETAILS]:
        call = f", call {difference.call}" if difference.call else ""
        place = "the end" if difference.turn < 0 else f"turn {difference.turn}{call}"
        say(f"{place}: {difference.what}: {difference.before} -> {difference.after}", "bold")
        say_diff(difference.detail)
    if len(real) > DETAILS:
        say(f"and {len(real) - DETAILS} more differences")
    for note in replay.notes:
        say(f"note: {note}")
    console().print(f"verdict: {replay.verdict}; {_summary(replay)}")


def show_all(replays: Sequence[Replay], count: int) -> None:
    """A line each, and those that differ turn by turn. `count`: how many recordings there were."""
    from rich.markup import escape

    out = console()
    shown = table("recording", "verdict", ">turns", ">seconds", ">now", "what differs")
    for replay in replays:
        name = escape(printable(replay.file.rpartition("/")[2]))
        seconds = map(_seconds, replay.seconds)
        shown.add_row(name, replay.verdict, str(len(replay.turns)), *seconds, _what(replay.differences))
    if replays:
        out.print(shown)
    different = [replay for replay in replays if not replay.same]
    for replay in different:
        show(replay)
    same = len(replays) - len(different)
    end = f"; {count - len(replays)} were not played" if count > len(replays) else ""
    out.print(f"{same} of {count} recordings replay the same, {len(different)} differ{end}", markup=False)


def _calls(turn: Turn) -> tuple[str, str]:
    results = turn.results
    more = f", {len(results) - CALLS} more" if len(results) > CALLS else ""
    codes = [str(result.exit_code) for result in results[:CALLS] if result.exit_code is not None]
    return ", ".join(result.tool for result in results[:CALLS]) + more, ", ".join(codes)


def _what(differences: Sequence[Difference]) -> str:
    from rich.markup import escape

    real = dict.fromkeys(each.what for each in differences if not each.times)
    if real:
        return f"[red]{escape(printable(', '.join(real)))}[/]"
    return "[dim]times only[/]" if differences else "same"


def _verdict(before: Judged | None, after: Judged | None, *, judged: bool) -> str:
    was, now = verdict_cell(before), verdict_cell(after)
    if not judged:
        return was if before is None else f"{was}, not judged again"
    return was if was == now else f"{was} -> {now}"


def _plain(judged: Judged | None) -> dict[str, Any] | None:
    if judged is None:
        return None
    counts = {"tests_passed": judged.passed, "tests_total": len(judged.tests)}
    return {**judged.model_dump(mode="json", exclude={"tests"}), **counts}


def _summary(replay: Replay) -> str:
    real = sum(not each.times for each in replay.differences)
    if real:
        return f"[red]{real} differences[/]"
    return "the same but for times" if replay.differences else "the same"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f}"
