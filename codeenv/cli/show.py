"""`codeenv show`: recordings in the terminal, a folder as a table, an episode turn by turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.text import Text

from codeenv.cli.options import AsJson
from codeenv.cli.terminal import COLOURS, FAILED, OK, clear_errors, console, plain_line, print_json, table

if TYPE_CHECKING:
    from rich.table import Table

    from codeenv.record import Recording, Summary

OPEN = "open"
"""What has no outcome: it still runs, was killed, or was closed before it was judged."""
ROWS = 100  # of a table, unless another limit is given
NOTE = 300  # characters of an error
PIPED = 1000  # columns where no terminal sets a width
GAP = 3  # columns between two of a table
SHRINK = ("task", "policy", "over, error")  # what is cut off where there is little room, to no less than `SHRUNK`
SHRUNK = 12
DROPPED = (">reward", "policy", ">turns", "id", ">tests")  # what is left out where that is not enough, in this order

KEYS: dict[str, Callable[[Summary], Any]] = {
    "started": lambda row: (row.started, row.file),
    "task": lambda row: (row.task, row.started),
    "policy": lambda row: (row.policy, row.task),
    "outcome": lambda row: (row.outcome or OPEN, row.task),
    "reward": lambda row: -1.0 if row.reward is None else row.reward,
    "tests": lambda row: (row.tests_passed or 0) / (row.tests_total or 1),
    "turns": lambda row: row.turns,
    "seconds": lambda row: row.seconds,
    "model": lambda row: row.model_seconds,
    "sandbox": lambda row: row.sandbox_seconds,
    "grading": lambda row: row.grading_seconds,
    "tokens": lambda row: row.prompt_tokens + row.completion_tokens,
}

Sort = Annotated[str, typer.Option(metavar="KEY", help=f"{', '.join(KEYS)}; -KEY for the largest first.")]
Outcomes = Annotated[str, typer.Option(metavar="A,B", help="Only these outcomes; open: has none, or still runs.")]


def show(
    path: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="A folder of recordings, or one.")],
    outcome: Outcomes = "",
    task: Annotated[str, typer.Option(metavar="GLOB", help="Only tasks of such an id.")] = "",
    policy: Annotated[str, typer.Option(metavar="GLOB", help="Only such policies or models.")] = "",
    min_turns: Annotated[int | None, typer.Option(min=0, help="Only with as many turns, or more.")] = None,
    max_turns: Annotated[int | None, typer.Option(min=0, help="Only with as many turns, or fewer.")] = None,
    min_seconds: Annotated[float | None, typer.Option(min=0, help="Only those that took as long, or longer.")] = None,
    error: Annotated[str, typer.Option(metavar="TEXT", help="Only where the error says so.")] = "",
    sort: Sort = "started",
    limit: Annotated[
        int | None, typer.Option(min=0, show_default=False, help=f"Rows at most; 0: all. {ROWS}, and all with --json.")
    ] = None,
    turn: Annotated[int | None, typer.Option(min=1, metavar="K", help="Of a FILE, this turn alone, and whole.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the recordings of a folder, or show an episode turn by turn.

    Exit code 0; 1 when a file of the folder cannot be read; 2 when there is nothing to show, or the FILE is no
    recording.
    """
    filters: dict[str, Any] = {
        "outcome": outcome, "task": task, "policy": policy, "min-turns": min_turns, "max-turns": max_turns,
        "min-seconds": min_seconds, "error": error, "limit": limit,
    }  # fmt: skip
    with clear_errors():
        if path.is_dir():
            if turn is not None:
                raise ValueError("--turn goes with one recording, not with a folder")
            raise typer.Exit(_show_folder(path, _Wanted(filters), sort, limit, as_json))
        if given := [name for name, value in filters.items() if value not in (None, "")]:
            raise ValueError(f"--{given[0]} goes with a folder, and {path} is none")
        _show_file(path, turn, as_json)


class _Wanted:
    """:raises ValueError: an outcome is none."""

    def __init__(self, filters: dict[str, Any]) -> None:
        from codeenv.grading.verdict import Outcome

        self._is = filters
        self._outcomes = {name.strip() for name in filters["outcome"].split(",") if name.strip()}
        valid = [*get_args(Outcome), OPEN]
        if unknown := self._outcomes - {*valid}:
            raise ValueError(f"--outcome: {sorted(unknown)[0]!r} is none; valid: {', '.join(valid)}")

    def __call__(self, row: Summary) -> bool:
        wanted = self._is
        return (
            (not self._outcomes or (row.outcome or OPEN) in self._outcomes)
            and (not wanted["task"] or fnmatchcase(row.task, wanted["task"]))
            and (not wanted["policy"] or fnmatchcase(row.policy, wanted["policy"]))
            and (wanted["min-turns"] is None or row.turns >= wanted["min-turns"])
            and (wanted["max-turns"] is None or row.turns <= wanted["max-turns"])
            and (wanted["min-seconds"] is None or row.seconds >= wanted["min-seconds"])
            and wanted["error"].lower() in row.error.lower()
        )


def _show_folder(folder: Path, wanted: _Wanted, sort: str, limit: int | None, as_json: bool) -> int:
    from codeenv.record.folder import Listing

    key = KEYS.get(sort.removeprefix("-"))
    if key is None:
        raise ValueError(f"--sort: {sort!r} is none; valid: {', '.join(KEYS)}, and each with a - before it")
    listing = Listing(folder)
    rows = listing.read()
    if not rows and not listing.unreadable:
        raise ValueError(f"{folder}: there are no recordings in it")
    found = sorted(filter(wanted, rows), key=key, reverse=sort.startswith("-"))
    shown = found[: limit if limit is not None else None if as_json else ROWS] if limit != 0 else found
    unreadable = dict(sorted(listing.unreadable.items()))
    if as_json:
        totals = {"recordings": len(rows), "found": len(found), "shown": len(shown), **_totals(found)}
        print_json({**totals, "unreadable": unreadable, "episodes": [row.model_dump(mode="json") for row in shown]})
    else:
        _print(shown, found, unreadable, len(rows))
    return FAILED if unreadable else OK


def _totals(rows: Sequence[Summary]) -> dict[str, Any]:
    rewards = [row.reward for row in rows if row.reward is not None]
    seconds = [row.seconds for row in rows]
    return {
        "outcomes": dict(Counter(row.outcome or OPEN for row in rows).most_common()),
        "mean_reward": fmean(rewards) if rewards else None,
        "turns": sum(row.turns for row in rows),
        "median_seconds": median(seconds) if seconds else None,
        "longest_seconds": max(seconds, default=None),
    }


def _print(shown: Sequence[Summary], found: Sequence[Summary], unreadable: dict[str, str], count: int) -> None:
    out = console()
    if not out.is_terminal:
        out.width = PIPED
    if shown:
        out.print(_table(shown, out.width))
    totals = _totals(found)
    text = f"{len(found)} episodes" + (f" of {count}" if len(found) < count else "")
    parts = [", ".join(f"{name} {number}" for name, number in totals["outcomes"].items())] if found else []
    parts += [f"mean reward {totals['mean_reward']:.3f}"] if totals["mean_reward"] is not None else []
    if found:
        parts.append(f"{totals['turns'] / len(found):.1f} turns each")
        parts.append(f"median {totals['median_seconds']:.1f} s, longest {totals['longest_seconds']:.1f} s")
    out.print(Text("; ".join([text, *parts])), soft_wrap=True)
    if len(shown) < len(found):
        out.print(f"shown are {len(shown)} of them; --limit 0 shows all", markup=False)
    for reason in unreadable.values():
        out.print(Text(f"unreadable: {plain_line(reason)}", style="red"), soft_wrap=True)


def _table(rows: Sequence[Summary], width: int) -> Table:
    """No wider than `width`, where columns that say less are left out for it."""
    cells = {
        "task": [plain_line(row.task) for row in rows],
        "policy": [plain_line(row.policy) for row in rows],
        "outcome": [row.outcome or OPEN for row in rows],
        ">reward": ["-" if row.reward is None else f"{row.reward:g}" for row in rows],
        ">tests": ["-" if row.tests_total is None else f"{row.tests_passed}/{row.tests_total}" for row in rows],
        ">turns": [str(row.turns) for row in rows],
        ">seconds": [f"{row.seconds:.1f}" for row in rows],
        "id": [plain_line(row.id) for row in rows],
        "over, error": [plain_line(_note(row)) for row in rows],
    }
    if len({*cells["policy"]}) < 2:
        del cells["policy"]
    natural = {name: max(len(name.lstrip(">")), *map(len, column)) for name, column in cells.items()}
    widths = {**natural, **{name: min(natural[name], SHRUNK) for name in SHRINK if name in cells}}
    for name in DROPPED:
        if sum(widths[one] + GAP for one in cells) > width:
            cells.pop(name, None)
    room = width - sum(widths[one] + GAP for one in cells)
    made = table(*cells)
    for name in SHRINK:
        if name in cells:
            more = min(natural[name] - widths[name], max(room, 0))
            room, widths[name] = room - more, widths[name] + more
    for name, column in zip(cells, made.columns, strict=True):
        column.no_wrap, column.width = True, widths[name]
    for number in range(len(rows)):
        texts = {name: Text(column[number]) for name, column in cells.items()}
        texts["outcome"].stylize(COLOURS.get(cells["outcome"][number], "default"))
        made.add_row(*texts.values())
    return made


def _note(row: Summary) -> str:
    if row.error:
        return row.error[:NOTE]
    if not row.ended:
        return "no end: it still runs, or was killed"
    return row.over or ("" if row.outcome else "closed before it was judged")


def _show_file(path: Path, turn: int | None, as_json: bool) -> None:
    from codeenv.cli.show_episode import print_episode, print_turn
    from codeenv.record import Recording

    recording = Recording.load(path, partial=True)
    if turn is not None and turn > len(recording.turns):
        raise ValueError(f"--turn: {path} has {len(recording.turns)} turns")
    if as_json:
        print_json(_as_json(recording) if turn is None else recording.turns[turn - 1].model_dump(mode="json"))
    elif turn is not None:
        print_turn(console(), recording.turns[turn - 1], whole=True)
    else:
        print_episode(console(), recording)


def _as_json(recording: Recording) -> dict[str, Any]:
    parts = {
        "summary": recording.summary,
        "opening": recording.opening,
        "start": recording.start,
        "workspace": recording.left,
        "end": recording.end,
    }
    found: dict[str, Any] = {name: part and part.model_dump(mode="json") for name, part in parts.items()}
    return {**found, "cut": recording.cut, "turns": [turn.model_dump(mode="json") for turn in recording.turns]}
