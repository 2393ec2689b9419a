"""One message of a policy without a model."""

from __future__ import annotations

from dataclasses import dataclass

from codeenv.tools import ToolCall


class PolicyError(ValueError):
    """This policy cannot be played on this task, or is not known; the message names what is missing."""


@dataclass(frozen=True)
class Message:
    """`text` and then `calls`. A call's arguments may be raw text that is not JSON; its `id`, if empty, is the server's
    to give."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
