"""The answer protocol: one message, one block of code in it, which becomes a file of the task.

Harnesses differ in what they take of a message: LiveCodeBench what lies between the first two fences, evalplus the most
lines that are Python, of which it keeps what the function needs, bigcode's the prompt and what was said. What is taken
here stands in `docs/prompts.md`. Code is not changed, but for its indentation as a whole and for what the policy was
shown and has left out (`Answer.head`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codeenv.answer.blocks import Block, blocks
from codeenv.answer.python import (
    as_class,
    binds,
    completed,
    does_something,
    is_body,
    settled,
    trimmed,
    with_head,
)
from codeenv.task import Answer

__all__ = ["NoAnswer", "code_of"]

TAGS = re.compile(r"^[ \t]*\[(PYTHON|BEGIN|CODE)\][ \t]*\n?(.*?)\s*(?:\[/\1\]|\[DONE\]|\Z)", re.DOTALL | re.MULTILINE)
ENDS = r"</(?:think|thinking|reasoning)>"
THOUGHT = re.compile(rf"""(?<!["'`]){ENDS}|{ENDS}(?!["'`])""")  # not where it is quoted
OPEN_THOUGHT = re.compile(r"\s*<(?:think|thinking|reasoning)>")
START = re.compile(
    r"(?:import |from \S+ import |(?:async )?def \w+|class \w+ *[(:]|@\w|if __name__|[A-Za-z_][\w, ]*=[^=])"
)
STARTS_TRIED = 10
MESSAGE_LIMIT = 1_000_000  # characters


class NoAnswer(ValueError):
    """There is no code in the message; the text says why."""


def code_of(message: str, answer: Answer) -> str:
    """The code that a message answers with, as it goes into `answer.path`. Lines end in `\\n`, the last one too.

    :raises NoAnswer: there is none, or the message has more than a million characters.
    """
    if len(message) > MESSAGE_LIMIT:
        raise NoAnswer(f"the message has {len(message)} characters, more than the {MESSAGE_LIMIT} that are read")
    said = _behind_reasoning(message.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff"))
    if not answer.path.endswith(".py"):
        return _of_any_language(said)
    tagged = [Block(text, True) for _, text in TAGS.findall(said)]
    if not tagged and does_something(said) and (code := _asked_for(said, answer)) is not None:
        return _ended(code)
    found = blocks(said) or tagged
    code = _chosen([block for block in found if block.python is not False and block.code.strip()], answer)
    if code is None and (code := _bare(said, answer)) is None:
        raise NoAnswer("no block in the message is Python" if found else "there is no code in the message")
    return _ended(code)


def _of_any_language(said: str) -> str:
    written = [block.code for block in blocks(said) if block.code.strip()]
    if not written:
        raise NoAnswer("there is no block of code in the message")
    return _ended(written[-1])


def _ended(code: str) -> str:
    return code.rstrip("\n") + "\n"


def _behind_reasoning(message: str) -> str:
    *_, said = THOUGHT.split(message)
    if OPEN_THOUGHT.match(said):
        raise NoAnswer("the reasoning in the message has no end, so there is no answer behind it")
    return said


def _chosen(candidates: Sequence[Block], answer: Answer) -> str | None:
    """The last block that defines what is asked for; else the last that completes what was shown. For a program, and
    where there is neither, the last that says it is Python; else the last that is."""
    if answer.entry_point:
        for block in reversed(candidates):
            if answer.entry_point in binds(block.code):
                return with_head(block.code, answer)
        for block in reversed(candidates):
            if (code := as_class(block.code, answer)) is not None:
                return code
            if is_body(block.code, sure=bool(block.python)) and (code := completed(block.code, answer)) is not None:
                return code
    for block in reversed(candidates):
        if block.python:
            return settled(block.code)
    return next((settled(block.code) for block in reversed(candidates) if does_something(block.code)), None)


def _bare(said: str, answer: Answer) -> str | None:
    """Code without a fence amid prose, or all of it going on from the code that was shown."""
    if answer.entry_point and is_body(said) and (code := completed(said, answer)) is not None:
        return code
    lines = said.split("\n")
    starts = [number for number, line in enumerate(lines) if START.match(line)]
    for start in starts[:STARTS_TRIED]:
        code = trimmed("\n".join(lines[start:]))
        if code and does_something(code) and (found := _asked_for(code, answer)) is not None:
            return found
    return None


def _asked_for(code: str, answer: Answer) -> str | None:
    if not answer.entry_point:
        return settled(code)
    return with_head(code, answer) if answer.entry_point in binds(code) else as_class(code, answer)
