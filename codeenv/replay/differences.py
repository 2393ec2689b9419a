"""How two recordings differ, but for times and ids.

Times and ids are: when an episode and its turns began, all seconds, the ids of the episode, of its calls, of the one it
was forked from, and the caller's labels. In texts they are what `without_times` takes out: texts that differ in nothing
else differ in `times`, which is said and does not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from codeenv.record.reading import Recording
from codeenv.record.schema import Change, Data, End, FileLeft, Judged, Left, Opening, Raw, Result, Turn
from codeenv.replay.difference import END, START, Difference, detail_of, of_texts, of_values, short, there

__all__ = [
    "END",
    "START",
    "Difference",
    "differences",
    "left_differences",
    "tests_moved",
    "turn_differences",
    "verdict_differences",
]

DETAIL_TESTS = 50


def differences(one: Recording, other: Recording) -> list[Difference]:
    """All of them, in order."""
    found = [*_openings(one.opening, other.opening), *_starts(one, other)]
    for a, b in zip_longest(one.turns, other.turns):
        if a is None or b is None:
            number = a.turn if a else b.turn if b else 0
            found.append(Difference(number, "turn", there(a), there(b)))
        else:
            found += [*turn_differences(a, b), *_said(a, b)]
    found += left_differences(one.left, other.left)
    found += _ends(one.end, other.end)
    if any(difference.times for difference in found):
        # Lengths follow from the texts: another duration may have another number of digits.
        found = [replace(each, times=True) if each.what.endswith("tokens") else each for each in found]
    return found


def turn_differences(one: Turn, other: Turn) -> list[Difference]:
    """Of what was done, what was seen, and what it changed."""
    at = one.turn
    found: list[Difference] = []
    for number, (a, b) in enumerate(zip_longest(one.results, other.results), 1):
        if a is None or b is None:
            found.append(Difference(at, "call", there(a), there(b), number))
        else:
            found += [replace(each, turn=at, call=number) for each in _results(a, b)]
    before, after = ({change.path: change for change in turn.diff} for turn in (one, other))
    for path in sorted(before.keys() | after.keys()):
        found += _changes(at, path, before.get(path), after.get(path))
    found += of_values(at, {name: (getattr(one, name), getattr(other, name)) for name in ("cwd", "over")})
    found += of_texts(at, "note on the diff", one.diff_note, other.diff_note)
    return found + of_texts(at, "error", one.error, other.error)


def verdict_differences(turn: int, one: Judged | None, other: Judged | None) -> list[Difference]:
    if one is None or other is None:
        return [] if one is other else [Difference(turn, "verdict", there(one), there(other))]
    names = ("outcome", "reward", "exit_code", "attempts")
    found = of_values(turn, {name: (getattr(one, name), getattr(other, name)) for name in names})
    moved = tests_moved(one, other)
    if not moved:
        found += of_texts(turn, "messages of tests", _messages(one), _messages(other))
    else:
        lines = [f"{name}: {a} -> {b}" for name, (a, b) in moved.items()]
        more = [f"... and {len(lines) - DETAIL_TESTS} more"] * (len(lines) > DETAIL_TESTS)
        detail = "\n".join(lines[:DETAIL_TESTS] + more)
        found.append(Difference(turn, "tests", _count(one), _count(other), detail=detail))
    return found + of_texts(turn, "reason", one.reason, other.reason)


def _messages(judged: Judged) -> str:
    return "\n".join(f"{test.id}: {test.message}" for test in judged.tests)


def _count(judged: Judged) -> str:
    return f"{judged.passed} of {len(judged.tests)}"


def tests_moved(one: Judged, other: Judged) -> dict[str, tuple[str, str]]:
    """By id, of the tests that did not come out the same."""
    before, after = ({test.id: "passed" if test.passed else "failed" for test in j.tests} for j in (one, other))
    ids = dict.fromkeys([*before, *after])
    pairs = {name: (before.get(name, "not there"), after.get(name, "not there")) for name in ids}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def left_differences(one: Left | None, other: Left | None) -> list[Difference]:
    """Of the workspaces that were judged."""
    if one is None or other is None:
        return [] if one is other else [Difference(END, "workspace", there(one), there(other))]
    found = of_texts(END, "workspace", one.missing, other.missing)
    before, after = ({**dict.fromkeys(left.removed), **_by_path(left.files)} for left in (one, other))
    for path in sorted(before.keys() | after.keys()):
        a, b = before.get(path), after.get(path)
        if a == b and (path in before) == (path in after):
            continue
        if a is None or b is None or (a.mode, a.link) != (b.mode, b.link):
            found.append(Difference(END, f"workspace: {path}", _left_as(path, before), _left_as(path, after)))
        else:
            found += _bytes(END, f"workspace: {path}", a.data, b.data)
    return found


# --- parts -------------------------------------------------------------------------------------------------------


def _openings(one: Opening, other: Opening) -> list[Difference]:
    pairs: dict[str, tuple[Any, Any]] = {
        "task": (one.task.model_dump(exclude={"source"}), other.task.model_dump(exclude={"source"})),
        "sandbox": (one.sandbox, other.sandbox),
        "policy": (one.policy, other.policy),
        "fork": (one.fork and one.fork.turn, other.fork and other.fork.turn),
    }
    for name in ("settings", "spec", "versions"):
        a, b = getattr(one, name), getattr(other, name)
        pairs |= {f"{name}: {key}": (a.get(key), b.get(key)) for key in {**a, **b}}
    return of_values(START, pairs)


def _starts(one: Recording, other: Recording) -> list[Difference]:
    a, b = one.start, other.start
    if a is None or b is None:
        return [] if a is b else [Difference(START, "start", there(a), there(b))]
    found = of_values(START, {"workdir": (a.workdir, b.workdir)})
    for before, after in zip_longest(a.prompt, b.prompt, fillvalue=dict[str, Any]()):
        role = str(before.get("role") or after.get("role"))
        found += of_texts(START, f"{role} message", str(before.get("content")), str(after.get("content")))
    return found


def _said(one: Turn, other: Turn) -> list[Difference]:
    a, b = one.said, other.said
    found = [*of_texts(one.turn, "message", a.text, b.text), *of_texts(one.turn, "reasoning", a.reasoning, b.reasoning)]
    names = ("prompt_tokens", "completion_tokens")
    return found + of_values(one.turn, {name.replace("_", " "): (getattr(a, name), getattr(b, name)) for name in names})


def _results(one: Result, other: Result) -> list[Difference]:
    names = ("name", "fault", "tool", "failed", "valid", "done", "exit_code")
    found = of_values(0, {name: (getattr(one, name), getattr(other, name)) for name in names})
    if _values_of(one.arguments) != _values_of(other.arguments):
        found += of_values(0, {"arguments": (one.arguments, other.arguments)})
    text = of_texts(0, "text", one.text, other.text)
    output = of_texts(0, "output behind the text", _output(one.raw), _output(other.raw))
    if text and output and output[0].times and all(" omitted" in each.text for each in (one, other)):
        text = [replace(text[0], times=True)]  # where it is cut depends on the lengths
    found += text or [*output, *of_values(0, {"tokens": (one.tokens, other.tokens)})]
    return found + verdict_differences(0, one.verdict, other.verdict)


def _values_of(arguments: str | dict[str, Any] | None) -> Any:
    """Values and their JSON text are the same: over HTTP there is the text alone."""
    if not isinstance(arguments, str):
        return arguments or {}
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _output(raw: Raw | None) -> str:
    return raw.output.bytes.decode("utf-8", "replace") if raw and raw.output else raw.text if raw else ""


def _changes(turn: int, path: str, one: Change | None, other: Change | None) -> list[Difference]:
    name = f"diff: {path}"
    if one is None or other is None:
        return [Difference(turn, name, there(one and one.change), there(other and other.change))]
    if one == other:
        return []
    if (one.change, one.mode, one.binary, one.target) != (other.change, other.mode, other.binary, other.target):
        return [Difference(turn, name, _state(one), _state(other), detail=detail_of(one.diff, other.diff))]
    if one.diff and other.diff:
        return of_texts(turn, name, one.diff, other.diff)
    return [Difference(turn, name, f"{one.size} bytes, {one.digest}", f"{other.size} bytes, {other.digest}")]


def _state(change: Change) -> str:
    return short(change.model_dump(exclude_defaults=True, exclude={"path", "diff"}))


def _ends(one: End | None, other: End | None) -> list[Difference]:
    if one is None or other is None:
        return [] if one is other else [Difference(END, "end", there(one), there(other))]
    found = of_values(END, {"outcome": (one.outcome, other.outcome), "over": (one.over, other.over)})
    found += verdict_differences(END, one.verdict, other.verdict)
    faults = [each.error.model_dump(include={"type", "stage"}) if each.error else None for each in (one, other)]
    found += of_values(END, {"error": (faults[0], faults[1])})
    found += of_texts(END, "error", *(each.error.message if each.error else "" for each in (one, other)))
    keys = {**one.tally, **other.tally}
    counts = {key: (one.tally.get(key), other.tally.get(key)) for key in keys if not key.endswith("_seconds")}
    return found + of_values(END, {key.replace("_", " "): pair for key, pair in counts.items()})


def _bytes(turn: int, what: str, one: Data, other: Data) -> list[Difference]:
    if one.text is not None and other.text is not None:
        return of_texts(turn, what, one.text, other.text)
    return [Difference(turn, what, f"{len(one.bytes)} bytes", f"{len(other.bytes)} bytes")]


def _left_as(path: str, files: Mapping[str, FileLeft | None]) -> str:
    if path not in files:
        return "as it was"
    file = files[path]
    return "removed" if file is None else f"{'link' if file.link else 'file'} of mode {file.mode:o}"


def _by_path(files: Iterable[FileLeft]) -> dict[str, FileLeft | None]:
    return {file.path: file for file in files}
