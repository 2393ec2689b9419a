"""An episode in the terminal, turn by turn. All of it is text of a model's or a box's: no control code of it gets
through."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from codeenv.cli.terminal import COLOURS, plain_line, plain_text

if TYPE_CHECKING:
    from codeenv.record import Recording
    from codeenv.record.schema import Change, Judged, Result, Turn

LINES = 16  # of one text, of which the first and the last are shown
DIFF_LINES = 60
WIDEST = 400  # characters of a line
FAILING = 20  # tests that are named

DIFF_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def print_episode(out: Console, recording: Recording) -> None:
    row, opening = recording.summary, recording.opening
    outcome = row.outcome or "open"
    head = Text(plain_line(row.task), style="bold").append("  ")
    head.append(outcome, style=COLOURS.get(outcome, "default"))
    if row.reward is not None:
        head.append(f", reward {row.reward:g}, {row.tests_passed} of {row.tests_total} tests")
    head.append(f", {row.turns} turns, {row.seconds:.1f} s (model {row.model_seconds:.1f}, ")
    head.append(f"sandbox {row.sandbox_seconds:.1f}, grading {row.grading_seconds:.1f})")
    out.print(head, soft_wrap=True)
    versions = ", ".join(f"{name} {version}" for name, version in opening.versions.items())
    about = [f"recording {opening.id}", opening.policy, opening.sandbox, opening.started, versions]
    if opening.fork:
        about.append(f"goes on from {opening.fork.id} after turn {opening.fork.turn}")
    out.print(Text(plain_line(", ".join(filter(None, about))), style="dim"), soft_wrap=True)
    if recording.end is None:
        what = recording.cut or "it has no end: the episode still runs, or was killed"
        out.print(Text(plain_line(what), style="yellow"), soft_wrap=True)
    for turn in recording.turns:
        print_turn(out, turn)
    if (end := recording.end) is not None:
        out.print(Rule(Text("the end"), align="left", style="dim"))
        if end.verdict:
            _print_verdict(out, end.verdict)
        if end.error:
            stage = f" ({end.error.stage})" if end.error.stage else ""
            what = f"{end.error.type}{stage}: {end.error.message}"
            out.print(Text(plain_line(what), style="magenta"), soft_wrap=True)
        if end.over:
            out.print(Text(f"over: {plain_line(end.over)}", style="dim"), soft_wrap=True)


def print_turn(out: Console, turn: Turn, *, whole: bool = False) -> None:
    """`whole`: nothing of it is shortened."""
    said = turn.said
    about = f"turn {turn.turn}: {turn.seconds:.1f} s, model {turn.waited:.1f} s"
    if said.prompt_tokens is not None or said.completion_tokens is not None:
        about += f", {said.prompt_tokens or 0} + {said.completion_tokens or 0} tokens"
    out.print(Rule(Text(about), align="left", style="dim"))
    if said.reasoning:
        _print(out, said.reasoning, LINES, whole, style="dim italic")
    if said.text:
        _print(out, said.text, LINES, whole)
    for result in turn.results:
        _print_result(out, result, whole)
    for change in turn.diff:
        _print_change(out, change, whole)
    for note in (turn.diff_note, turn.error):
        if note:
            out.print(Text(plain_line(note), style="yellow"), soft_wrap=True)


def _print_result(out: Console, result: Result, whole: bool) -> None:
    out.print(Text(f"> {plain_line(result.name)}", style="bold cyan"), soft_wrap=True)
    for name, value in _arguments(result).items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        if result.name == "bash" and name == "command":
            _print(out, text, LINES, whole, style="cyan", first="$ ")
        elif "\n" in text.rstrip("\n"):
            out.print(Text(f"{plain_line(name)}:", style="cyan"))
            _print(out, text, LINES, whole, style="cyan", first="  ")
        else:
            _print(out, text, LINES, whole, style="cyan", first=f"{plain_line(name)}: ")
    facts = [f"exit code {result.exit_code}"] if result.exit_code is not None else []
    facts += [f"{result.seconds:.1f} s"] if result.seconds >= 0.05 else []
    if result.raw is not None and result.raw.output is not None:
        facts.append(f"{result.raw.output_bytes} bytes")
    if facts:
        style = "red" if result.failed else "dim"
        out.print(Text(", ".join(facts), style=style), soft_wrap=True)
    _print(out, result.text, LINES, whole)


def _arguments(result: Result) -> Mapping[str, Any]:
    """By name, as far as they can be understood."""
    given = result.arguments
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {"arguments": given}
    if isinstance(given, dict):
        return cast("dict[str, Any]", given)
    return {} if given is None else {"arguments": given}


def _print_change(out: Console, change: Change, whole: bool) -> None:
    about = Text(f"{change.change} {plain_line(change.path)}", style="bold")
    if change.target is not None:
        about.append(f" -> {plain_line(change.target)}")
    elif change.change != "removed":
        about.append(f", {change.size} bytes{', binary' if change.binary else ''}", style="dim")
    if change.mode is not None:
        about.append(f", mode {change.mode:o}", style="dim")
    out.print(about, soft_wrap=True)
    for line in _shortened(change.diff, DIFF_LINES, whole):
        style = next((style for start, style in DIFF_STYLES if line.startswith(start)), "default")
        out.print(Text(line, style=style), soft_wrap=True)


def _print_verdict(out: Console, verdict: Judged) -> None:
    text = Text(verdict.outcome, style=COLOURS.get(verdict.outcome, "default"))
    text.append(f": reward {verdict.reward:g}, {verdict.passed} of {len(verdict.tests)} tests, ")
    text.append(f"exit code {'-' if verdict.exit_code is None else verdict.exit_code}, {verdict.seconds:.1f} s")
    if verdict.reason:
        text.append(f"; {plain_line(verdict.reason)}")
    out.print(text, soft_wrap=True)
    failing = [test for test in verdict.tests if not test.passed]
    for test in failing[:FAILING]:
        message = f": {plain_line(test.message)[:WIDEST]}" if test.message else ""
        out.print(Text(f"  failed {plain_line(test.id)}{message}", style="red"), soft_wrap=True)
    if (more := len(failing) - FAILING) > 0:
        out.print(Text(f"  and {more} more", style="red"))


def _print(out: Console, text: str, limit: int, whole: bool, *, style: str = "", first: str = "") -> None:
    for number, line in enumerate(_shortened(text, limit, whole)):
        out.print(Text((first if number == 0 else " " * len(first)) + line, style=style), soft_wrap=True)


def _shortened(text: str, limit: int, whole: bool) -> list[str]:
    """Its lines, the ones in the middle left out and counted."""
    lines = plain_text(text).rstrip("\n").split("\n") if text else []
    if whole:
        return lines
    if (more := len(lines) - limit) > 1:
        lines = [*lines[: limit // 2], f"[{more} more lines]", *lines[-(limit - limit // 2) :]]
    return [
        line if len(line) <= WIDEST else f"{line[:WIDEST]} [{len(line) - WIDEST} more characters]" for line in lines
    ]
