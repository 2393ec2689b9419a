"""A call of a tool: how a policy makes it, what is valid, and what it is told when it is not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

SHOWN_NAME = 80
SHOWN_FAULTS = 6


@dataclass(frozen=True)
class ToolCall:
    """A call as the policy made it: `arguments` is its JSON text, or the values themselves. `fault`: why it cannot run,
    where that is already known."""

    name: str
    arguments: str | Mapping[str, Any] | None = None
    id: str = ""
    fault: str = ""


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it holds a lone surrogate, which is not valid Unicode") from error
    return text


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it holds a NUL character")
    return text


Text = Annotated[str, AfterValidator(_encodable)]
Line = Annotated[Text, AfterValidator(_no_nul)]


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Bash(Arguments):
    """Run a shell command with bash. The working directory and exported variables carry over to later calls."""

    command: Line = Field(min_length=1, description="The command, any bash script.")


class ReadFile(Arguments):
    """Show a file, or some of its lines."""

    path: Line = Field(min_length=1, description="Relative to the project, or absolute.")
    start_line: int = Field(1, ge=1, description="First line to show, counted from 1.")
    line_count: int = Field(0, ge=0, description="How many lines to show; 0 means to the end.")


class WriteFile(Arguments):
    """Create a file or overwrite it. Missing directories are made."""

    path: Line = Field(min_length=1, description="Relative to the project, or absolute.")
    content: Text = Field(description="The whole content.")


class EditFile(Arguments):
    """Replace one exact piece of text in a file. It must occur exactly once."""

    path: Line = Field(min_length=1, description="Relative to the project, or absolute.")
    old_text: Text = Field(
        description="The text to replace, exactly as in the file, with enough around it to be unique."
    )
    new_text: Text = Field(description="The text to put in its place.")


class RunTests(Arguments):
    """Run the hidden tests on the present files and see how many pass. Nothing in the project changes."""


class Submit(Arguments):
    """End the work. The files are then judged as they are."""


TOOLS: dict[str, type[Arguments]] = {
    "bash": Bash,
    "read_file": ReadFile,
    "write_file": WriteFile,
    "edit_file": EditFile,
    "run_tests": RunTests,
    "submit": Submit,
}


def select_tools(names: Sequence[str] | None) -> tuple[str, ...]:
    """The tools by name, all when None. :raises ValueError: an unknown name, or none at all; lists the valid ones."""
    chosen = tuple(dict.fromkeys(TOOLS if names is None else names))
    unknown = [name for name in chosen if name not in TOOLS]
    if unknown or not chosen:
        raise ValueError(f"tools: {', '.join(map(repr, unknown)) or 'none given'}; valid: {', '.join(TOOLS)}")
    return chosen


def definitions(names: Sequence[str]) -> list[dict[str, Any]]:
    """Each tool as `{"name", "description", "parameters"}`, the parameters a JSON schema."""
    return [
        {"name": name, "description": TOOLS[name].__doc__, "parameters": deepcopy(_schema(TOOLS[name]))}
        for name in names
    ]


@cache  # pydantic takes half a millisecond for each
def _schema(model: type[Arguments]) -> dict[str, Any]:
    schema = model.model_json_schema()
    properties = {
        name: {key: value for key, value in schema_of.items() if key != "title"}
        for name, schema_of in schema.get("properties", {}).items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def understand(call: ToolCall, tools: Sequence[str]) -> Arguments:
    """The arguments of a call, all of them valid. :raises ValueError: they are not, or there is no such tool; says what
    is valid."""
    if call.fault:
        raise ValueError(call.fault)
    if call.name not in tools:
        raise ValueError(f"unknown tool {call.name[:SHOWN_NAME]!r}; the tools are {', '.join(tools)}")
    model = TOOLS[call.name]
    values: object = call.arguments
    if isinstance(values, str):
        try:
            values = json.loads(values) if values.strip() else {}
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the arguments are not complete JSON ({error}); {_valid(call.name, model)}") from error
    if values is None:
        values = {}
    if not isinstance(values, Mapping):
        raise ValueError(
            f"the arguments must be a JSON object, not {type(values).__name__}; {_valid(call.name, model)}"
        )
    try:
        return model.model_validate(dict(values))  # pyright: ignore[reportUnknownArgumentType]
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[:SHOWN_FAULTS]
        where = [shortened(".".join(map(str, fault["loc"])), SHOWN_NAME) or "names" for fault in found]
        what = [fault["msg"].removeprefix("Value error, ") for fault in found]
        faults = "; ".join(f"{key}: {text}" for key, text in zip(where, what, strict=True))
        raise ValueError(f"{faults}; {_valid(call.name, model)}") from error


def _valid(name: str, model: type[Arguments]) -> str:
    fields = model.model_fields
    if not fields:
        return f"{name} takes no arguments: {{}}"
    parts = [
        f'"{key}": {_type(info.annotation)}{"" if info.is_required() else " (optional)"}'
        for key, info in fields.items()
    ]
    return f"{name} takes {{{', '.join(parts)}}}"


def _type(annotation: object) -> str:
    return "integer" if annotation is int else "string"


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + " ..."
