"""An episode out of messages that are there already: what a policy said, as chat completions have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from codeenv.calls import ToolCall
from codeenv.episode import Episode
from codeenv.record import Said


async def play(episode: Episode, messages: Iterable[Mapping[str, Any]]) -> None:
    """Take the policy's messages in order, until the episode is over; those of others are passed over.

    :raises SandboxError: the box is lost. :raises ValueError: a tool call is not in OpenAI's form.
    """
    for message in messages:
        if episode.over:
            return
        if message.get("role") != "assistant":
            continue
        said = Said(text=text_of(message.get("content")))
        if episode.settings.protocol == "tools":
            await episode.turn([_call(call) for call in message.get("tool_calls") or ()], said=said)
        else:
            await episode.step(said.text, said=said)


def text_of(content: Any) -> str:
    """A message's content, which may be text, parts of it, or none."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text") or "" for part in content if hasattr(part, "get"))


def _call(call: Any) -> ToolCall:
    fields = cast("Mapping[str, Any]", call if isinstance(call, Mapping) else {})
    inner: Any = fields.get("function") or fields
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):  # pyright: ignore[reportUnknownMemberType]
        raise ValueError("tool_calls: each has an id, and a function with a name and arguments")
    made = cast("Mapping[str, Any]", inner)
    return ToolCall(made["name"], made.get("arguments"), str(fields.get("id") or ""))
