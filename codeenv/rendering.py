"""What an observation is made of, and how its text is made: again and again the same, with other templates or limits
another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codeenv.observation import TokenCounter, cut, render
from codeenv.prompts import Prompts

SLACK_TOKENS = 64  # for the status line under an output that fills its own budget

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Source:
    """A template with its values, or a text. With a `template`, `output` is a command's, as its box kept it:
    `output_bytes` long, and whole in the box's file `saved_to` (see `codeenv.observation.render`). Without, `text` is
    what `where` holds."""

    template: str = ""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output: bytes = b""
    output_bytes: int = 0
    saved_to: str = ""
    text: str = ""
    where: str = ""


def rendered(source: Source, prompts: Prompts, counter: TokenCounter, tokens: int) -> str:
    """The text that a policy sees: a command's output or a file's text in at most `tokens`, a status line on top.

    :raises ValueError: the template fails on the values.
    """
    if not source.template:
        text = cut(source.text, tokens, counter=counter, where=source.where) if source.where else source.text
    else:
        values = dict(source.values)
        if source.template == "bash.j2":
            values["output"] = render(
                source.output, total=source.output_bytes, tokens=tokens, counter=counter, saved_to=source.saved_to
            )
        text = prompts.render(source.template, **values).strip("\n") or "[nothing]"
    return cut(presentable(text), tokens + SLACK_TOKENS, counter=counter)


def presentable(text: str) -> str:
    """Valid Unicode, control codes written out. `\\r` stays: an edit has to match it."""
    text = text.encode("utf-8", "replace").decode()
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
