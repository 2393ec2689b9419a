"""The OpenAI chat-completions protocol, the part that a policy's server speaks: what a request holds, what an answer
looks like."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from codeenv.policies.message import Message, PolicyError
from codeenv.text_protocol import write
from codeenv.tools import TOOLS, ToolCall

CHARACTERS_A_TOKEN = 4  # usage numbers are estimates
PIECE = 20_000  # characters of one streamed delta


Spoken = tuple[str, tuple[tuple[str, str], ...]]
"""A policy's message as it stands in a conversation: its text, and each call's name and arguments."""


class Part(BaseModel):
    text: str | None = None


class CalledFunction(BaseModel):
    name: str = ""
    arguments: str | None = None


class Called(BaseModel):
    function: CalledFunction = CalledFunction()


class Said(BaseModel):
    role: str
    content: str | list[Part] | None = None
    tool_calls: list[Called] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content or ""


class Function(BaseModel):
    name: str


class Tool(BaseModel):
    function: Function


class StreamOptions(BaseModel):
    include_usage: bool = False


class ChatRequest(BaseModel):
    """What is read of a request; other fields are taken and have no effect."""

    model: str | None = None
    messages: list[Said] = Field(min_length=1)
    tools: list[Tool] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(1, ge=1, le=1)

    @property
    def step(self) -> int:
        return sum(said.role == "assistant" for said in self.messages)

    @property
    def first_answer(self) -> str:
        return next((said.text for said in self.messages if said.role == "assistant"), "")

    @property
    def answers(self) -> list[Spoken]:
        """What the policy has said so far."""
        return [
            (said.text, tuple((call.function.name, call.function.arguments or "") for call in said.tool_calls or ()))
            for said in self.messages
            if said.role == "assistant"
        ]

    @property
    def first_question(self) -> str:
        return next((said.text for said in self.messages if said.role == "user"), "")

    @property
    def offered(self) -> tuple[str, ...]:
        """Our tools that this request offers: its `tools`, or the blocks that its system message shows. Empty where it
        shows none."""
        if self.tools:
            names = {tool.function.name for tool in self.tools}
        else:
            system = "\n".join(said.text for said in self.messages if said.role in ("system", "developer"))
            names = set(re.findall(r"^`{3,}[ \t]*(\w+)", system, re.MULTILINE)) & set(TOOLS)
        return tuple(name for name in TOOLS if name in names)


class Answer:
    """One message of a policy as a completion, whole or streamed."""

    def __init__(self, request: ChatRequest, model: str, message: Message, note: str) -> None:
        if message.text and note:
            message = replace(message, text=f"{message.text} {note}")
        text, calls = spoken(message, tools=bool(request.tools))
        self._calls = [_call(call, f"call_{request.step}_{n}") for n, call in enumerate(message.calls[: len(calls)])]
        self._reasoning = {"reasoning_content": message.reasoning} if message.reasoning else {}
        self._content = text if text or not self._calls else None
        self._finish = "tool_calls" if self._calls else "stop"
        prompt = sum(len(said.text) for said in request.messages) // CHARACTERS_A_TOKEN + 4 * len(request.messages)
        output = (len(text) + sum(len(call["function"]["arguments"]) for call in self._calls)) // CHARACTERS_A_TOKEN + 1
        self._usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}
        self._with_usage = request.stream_options is not None and request.stream_options.include_usage

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self._content, **self._reasoning}
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "finish_reason": self._finish, "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage}

    def streamed(self) -> Iterator[bytes]:
        """Server-sent events: deltas, one with the finish reason, the usage if asked for, `[DONE]`."""
        yield self._event({"role": "assistant", "content": "" if self._content is not None else None})
        for piece in _pieces(self._reasoning.get("reasoning_content", "")):
            yield self._event({"reasoning_content": piece})
        for piece in _pieces(self._content or ""):
            yield self._event({"content": piece})
        for index, call in enumerate(self._calls):
            opening = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield self._event({"tool_calls": [opening]})
            for piece in _pieces(call["function"]["arguments"]):
                yield self._event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield self._event({}, self._finish)
        if self._with_usage:
            yield self._data({"choices": [], "usage": self._usage})
        yield b"data: [DONE]\n\n"

    def _event(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return self._data({"choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]})

    def _data(self, rest: dict[str, Any]) -> bytes:
        return b"data: " + json.dumps({**self._head, "object": "chat.completion.chunk", **rest}).encode() + b"\n\n"


def error_body(
    message: str, *, kind: str = "invalid_request_error", code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + PIECE] for at in range(0, len(text), PIECE))


def spoken(message: Message, *, tools: bool) -> Spoken:
    """A message as a conversation has it: without tools, its calls are blocks of the text.

    :raises PolicyError: a call cannot be written as a block.
    """
    if tools:
        return message.text, tuple((call.name, _arguments(call)) for call in message.calls)
    return "\n\n".join(filter(None, (message.text, *map(_block, message.calls)))), ()


def _arguments(call: ToolCall) -> str:
    """As text; what is text already may be anything."""
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(dict(call.arguments or {}), ensure_ascii=False)


def _call(call: ToolCall, name: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": _arguments(call)}
    return {"id": call.id or name, "type": "function", "function": function}


def _block(call: ToolCall) -> str:
    arguments: object = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError as error:
            raise PolicyError(
                f"a call of {call.name!r} has arguments that are no JSON, which the text protocol cannot carry"
            ) from error
    if not isinstance(arguments, Mapping | None):
        raise PolicyError(
            f"a call of {call.name!r} has arguments that are no object, which the text protocol cannot carry"
        )
    try:
        return write(call.name, dict(arguments or {}))  # pyright: ignore[reportUnknownArgumentType]
    except KeyError as error:
        raise PolicyError(
            f"a call of {call.name!r} lacks the argument {error}, without which there is no block"
        ) from error
    except ValueError as error:
        raise PolicyError(f"a call of {call.name!r} cannot be written as a block: {error}") from error
