"""How a policy brings one file to what it should be, with the tools it is offered."""

from __future__ import annotations

import base64
import posixpath
import shlex
from collections.abc import Sequence
from difflib import SequenceMatcher

from codeenv.editing import EditError, replace_once
from codeenv.text_protocol import Block, parse, write
from codeenv.tools import ToolCall

DIFF_LIMIT = 200_000  # bytes; comparing lines is quadratic
CONTEXTS = (1, 3, 8)  # lines around a change, until it is found once


def change(path: str, old: bytes | None, new: bytes, *, tools: Sequence[str], text: bool) -> list[ToolCall]:
    """The calls that turn `old` (None: no such file) into `new`, byte for byte: edits where the change is small, else
    the whole file, else a shell command. `text`: they must survive the text protocol. Empty if the tools cannot do
    it."""

    def possible(calls: list[ToolCall]) -> bool:
        return bool(calls) and all(call.name in tools and (not text or carries(call)) for call in calls)

    for calls in (_edits(path, old, new), _whole(path, new), _command(path, new)):
        if possible(calls):
            return calls
    return []


def carries(call: ToolCall) -> bool:
    """Whether the text protocol brings this call across unchanged."""
    arguments = call.arguments
    if not isinstance(arguments, dict):
        return False
    try:
        return parse(write(call.name, arguments), [call.name]) == [Block(call.name, arguments)]
    except (KeyError, ValueError):
        return False


def _edits(path: str, old: bytes | None, new: bytes) -> list[ToolCall]:
    if not old or max(len(old), len(new)) > DIFF_LIMIT:
        return []
    try:
        before, after = _lines(old.decode()), _lines(new.decode())
    except UnicodeDecodeError:
        return []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for context in CONTEXTS:
        content, calls, size = old, list[ToolCall](), 0
        try:
            for group in matcher.get_grouped_opcodes(context):
                gone = "".join(before[group[0][1] : group[-1][2]])
                come = "".join(after[group[0][3] : group[-1][4]])
                content = replace_once(content, gone, come)
                calls.append(ToolCall("edit_file", {"path": path, "old_text": gone, "new_text": come}))
                size += len(gone) + len(come)
        except EditError:
            continue
        return calls if content == new and size < len(new) else []
    return []


def _lines(text: str) -> list[str]:
    """Split at line feeds alone, which stay."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _whole(path: str, new: bytes) -> list[ToolCall]:
    try:
        content = new.decode()
    except UnicodeDecodeError:
        return []
    return [] if "\0" in content else [ToolCall("write_file", {"path": path, "content": content})]


def _command(path: str, new: bytes) -> list[ToolCall]:
    folder = posixpath.dirname(path)
    made = f"mkdir -p -- {shlex.quote(folder)} && " if folder else ""
    data = base64.encodebytes(new).decode()
    return [ToolCall("bash", {"command": f"{made}base64 -d > {shlex.quote(path)} <<'END'\n{data}END"})]
