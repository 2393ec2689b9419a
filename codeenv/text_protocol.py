"""The text protocol: tools as fenced blocks in a plain message, for models without tool calls.

A block opens with three or more backticks and a tool's name at the start of a line, the path after it where the tool takes
one, and closes with at least as many backticks. Blocks of any other name are prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

OPENING = re.compile(r"^(`{3,})[ \t]*([A-Za-z_]+)(?:[ \t]+(.*?))?[ \t]*$")
OLD, MIDDLE, NEW = "<<<<<<< OLD", "=======", ">>>>>>> NEW"


@dataclass(frozen=True)
class Block:
    """One call as written: its tool and arguments, or the `fault` for which it cannot run."""

    tool: str
    arguments: dict[str, Any]
    fault: str = ""


def parse(message: str, tools: Sequence[str]) -> list[Block]:
    """The tool calls of a message, in order."""
    blocks: list[Block] = []
    lines = message.split("\n")
    at = 0
    while at < len(lines):
        opening = OPENING.match(lines[at].rstrip("\r"))
        at += 1
        if opening is None:
            continue
        fence, tool, path = opening.group(1), opening.group(2), opening.group(3) or ""
        end = next((n for n in range(at, len(lines)) if _closes(lines[n], fence)), None)
        if end is None:
            if tool in tools:
                blocks.append(Block(tool, {}, f"the {tool} block was never closed with {fence}; nothing was run"))
            break
        if tool in tools:
            blocks.append(_block(tool, path, lines[at:end]))
        at = end + 1
    return blocks


def write(tool: str, arguments: dict[str, Any]) -> str:
    """One call as a block, the inverse of `parse` (a written file gets a final newline)."""
    path = arguments.get("path", "")
    match tool:
        case "bash":
            body = arguments["command"]
        case "write_file":
            body = arguments["content"]
        case "edit_file":
            body = f"{OLD}\n{_ended(arguments['old_text'])}{MIDDLE}\n{_ended(arguments['new_text'])}{NEW}"
        case _:
            body = ""
    runs = [len(run) for run in re.findall(r"^`{3,}", body, re.MULTILINE)]
    fence = "`" * max(3, *(length + 1 for length in runs), 3)
    return f"{fence}{' '.join(filter(None, (tool, path)))}\n{_ended(body)}{fence}"


def _lines(lines: list[str]) -> str:
    """Every line ended, the last one and empty ones too."""
    return "".join(f"{line}\n" for line in lines)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _closes(line: str, fence: str) -> bool:
    line = line.rstrip()
    return len(line) >= len(fence) and set(line) == {"`"}


def _block(tool: str, path: str, body: list[str]) -> Block:
    text = "\n".join(body)
    match tool:
        case "bash":
            return Block(tool, {"command": text})
        case "write_file":
            return Block(tool, {"path": path, "content": _lines(body)})
        case "edit_file":
            marks = [[n for n, line in enumerate(body) if line.rstrip() == mark] for mark in (OLD, MIDDLE, NEW)]
            if any(len(places) != 1 for places in marks) or not marks[0][0] < marks[1][0] < marks[2][0]:
                return Block(tool, {}, f"an edit_file block holds {OLD}, the old text, {MIDDLE}, the new text, {NEW}, each marker once on its own line")  # fmt: skip
            first, middle, last = (places[0] for places in marks)
            old, new = body[first + 1 : middle], body[middle + 1 : last]
            # Whole lines are exchanged: without its last newline the old text would also match inside a line.
            return Block(tool, {"path": path, "old_text": _lines(old), "new_text": _lines(new)})  # fmt: skip
        case "read_file":
            return Block(tool, {"path": path})
        case _:
            return Block(tool, {})
