"""The text protocol: tools as fenced blocks in a plain message, for models without tool calls.

A block opens with three or more backticks and a tool's name at the start of a line, the path after it where the tool
takes one, and closes with at least as many backticks. Blocks of any other name, or of none, are prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

OPENING = re.compile(r"(`{3,})[ \t]*([^`\s]*)(?:[ \t]+(.*?))?[ \t]*")
OLD, MIDDLE, NEW = "<<<<<<< OLD", "=======", ">>>>>>> NEW"


@dataclass(frozen=True)
class Block:
    """One call as written: its tool and arguments, or the `fault` for which it cannot run."""

    tool: str
    arguments: dict[str, Any]
    fault: str = ""


def parse(message: str, tools: Sequence[str]) -> list[Block]:
    """The tool calls of a message, in order. After a block of which it is not certain where it ends, the rest of the
    message is not read: what it holds may be a part of that block."""
    blocks: list[Block] = []
    lines = message.split("\n")
    at = 0
    while at < len(lines):
        crlf = lines[at].endswith("\r")
        opening = OPENING.fullmatch(lines[at].rstrip("\r"))
        at += 1
        if opening is None:
            continue
        fence, tool, path = opening.group(1), opening.group(2), opening.group(3) or ""
        end = next((n for n in range(at, len(lines)) if _closes(lines[n], fence)), None)
        if tool not in tools:
            # A fence that never closes is a stray one: what follows is read as if it were not there.
            at = at if end is None else end + 1
            continue
        if end is None:
            return [*blocks, Block(tool, {}, f"the {tool} block was never closed with {fence}; nothing of it was run")]
        body = lines[at:end]
        if any(_opens(line, fence) for line in body):
            return [*blocks, Block(tool, {}, _nested(tool, fence))]
        blocks.append(_block(tool, path, [line.removesuffix("\r") for line in body] if crlf else body))
        at = end + 1
    return blocks


def write(tool: str, arguments: dict[str, Any]) -> str:
    """One call as a block, the inverse of `parse`. Lines are whole there: a final newline is added to a file's content
    and to an edit's texts, and one is taken from a command. :raises ValueError: a path that a block cannot carry."""
    path = arguments.get("path", "")
    if path != path.strip() or "\n" in path:
        raise ValueError(f"{path!r} cannot stand in a block: it begins or ends with a blank, or has a line break")
    match tool:
        case "bash":
            body = arguments["command"]
        case "write_file":
            body = arguments["content"]
        case "edit_file":
            body = f"{OLD}\n{_ended(arguments['old_text'])}{MIDDLE}\n{_ended(arguments['new_text'])}{NEW}"
        case _:
            body = ""
    fence = fence_for(body)
    return f"{fence}{' '.join(filter(None, (tool, path)))}\n{_ended(body)}{fence}"


def fence_for(body: str) -> str:
    """Backticks enough to put around this text."""
    runs = [len(run) for run in re.findall(r"^[ \t]*(`{3,})", body, re.MULTILINE)]
    return "`" * (max([2, *runs]) + 1)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _closes(line: str, fence: str) -> bool:
    line = line.rstrip()
    return len(line) >= len(fence) and set(line) == {"`"}


def _opens(line: str, fence: str) -> bool:
    opening = OPENING.fullmatch(line.rstrip())
    return opening is not None and bool(opening.group(2)) and len(opening.group(1)) >= len(fence)


def _nested(tool: str, fence: str) -> str:
    return (
        f"the {tool} block holds a line that opens a fence of its own, so that its end is not clear; open and close "
        f"the block with more backticks ({fence}` or more). Nothing from this block on was run"
    )


def _block(tool: str, path: str, body: list[str]) -> Block:
    match tool:
        case "bash":
            return Block(tool, {"command": "\n".join(body)})
        case "write_file":
            return Block(tool, {"path": path, "content": _text(body)})
        case "edit_file":
            marks = [[n for n, line in enumerate(body) if line.rstrip() == mark] for mark in (OLD, MIDDLE, NEW)]
            if any(len(places) != 1 for places in marks) or not marks[0][0] < marks[1][0] < marks[2][0]:
                fault = f"an edit_file block holds {OLD}, the old text, {MIDDLE}, the new text, {NEW}"
                return Block(tool, {}, f"{fault}, each marker once on its own line")
            first, middle, last = (places[0] for places in marks)
            # Whole lines are exchanged: without its last newline the old text would also match inside a line.
            old, new = _text(body[first + 1 : middle]), _text(body[middle + 1 : last])
            return Block(tool, {"path": path, "old_text": old, "new_text": new})
        case "read_file":
            return Block(tool, {"path": path})
        case _:
            return Block(tool, {})


def _text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)
