"""What a policy may do: the tools, their definitions, and the one place where calls become actions.

Every call gets exactly one observation. A call that cannot be understood runs nothing and is told what would be valid.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from codeenv.editing import EditError, replace_once
from codeenv.grading.verdict import Verdict
from codeenv.observation import TokenCounter, clean, cut, render
from codeenv.prompts import Prompts
from codeenv.sandbox.api import MiB, Sandbox
from codeenv.shell import Shell

EDIT_LIMIT = 8 * MiB
SHOWN_NAME = 80


@dataclass(frozen=True)
class ToolCall:
    """A call as the policy made it: `arguments` is its JSON text, or the values themselves. `fault`: why it cannot run,
    where that is already known."""

    name: str
    arguments: str | Mapping[str, Any] | None = None
    id: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Observation:
    """What the policy sees of one call. `failed`: it was not valid, or ended other than well. `seconds` in the sandbox."""

    text: str
    tool: str
    failed: bool = False
    valid: bool = True
    done: bool = False
    exit_code: int | None = None
    seconds: float = 0.0
    tokens: int = 0
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


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
    old_text: Text = Field(description="The text to replace, exactly as in the file, with enough around it to be unique.")
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
    return [{"name": name, "description": TOOLS[name].__doc__, "parameters": _schema(TOOLS[name])} for name in names]


def _schema(model: type[Arguments]) -> dict[str, Any]:
    schema = model.model_json_schema()
    properties = {
        name: {key: value for key, value in schema_of.items() if key != "title"}
        for name, schema_of in schema.get("properties", {}).items()
    }
    return {"type": "object", "properties": properties, "required": schema.get("required", []), "additionalProperties": False}


class Toolbox:
    """The tools of one episode, bound to its box."""

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        tools: Sequence[str],
        prompts: Prompts,
        counter: TokenCounter,
        observation_tokens: int,
        run_tests: Callable[[], Awaitable[Verdict]],
        feedback: str,
    ) -> None:
        self._sandbox = sandbox
        self._shell = Shell(sandbox)
        self._tools = tuple(tools)
        self._prompts = prompts
        self._counter = counter
        self._budget = observation_tokens
        self._run_tests = run_tests
        self._feedback = feedback

    async def call(self, call: ToolCall, *, timeout: float) -> Observation:
        """Run one call, a command for at most `timeout` seconds, and say what happened.

        :raises SandboxError: the box is lost or broke; everything else that can go wrong is an observation.
        """
        started = time.monotonic()
        try:
            arguments = self._understand(call)
        except ValueError as error:
            return self._finished(self._prompts.render("invalid.j2", fault=str(error)), call.name, failed=True, valid=False)
        try:
            match arguments:
                case Bash():
                    observation = await self._bash(arguments, timeout)
                case ReadFile():
                    observation = self._finished(await self._read(arguments), call.name)
                case WriteFile():
                    data = arguments.content.encode()
                    await self._sandbox.write_file(self._path(arguments.path), data)
                    observation = self._finished(f"wrote {len(data)} bytes to {arguments.path}", call.name)
                case EditFile():
                    await self._edit(arguments)
                    observation = self._finished(f"edited {arguments.path}", call.name)
                case RunTests():
                    observation = self._tests(await self._run_tests())
                case _:
                    observation = self._finished("submitted", call.name, done=True)
        except (OSError, EditError, ValueError) as error:
            observation = self._finished(f"[failed: {_plain(error)}]", call.name, failed=True)
        return _timed(observation, time.monotonic() - started)

    def _understand(self, call: ToolCall) -> Arguments:
        """:raises ValueError: the call is not valid; says what is."""
        if call.fault:
            raise ValueError(call.fault)
        if call.name not in self._tools:
            raise ValueError(f"unknown tool {call.name[:SHOWN_NAME]!r}; the tools are {', '.join(self._tools)}")
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
            raise ValueError(f"the arguments must be a JSON object, not {type(values).__name__}; {_valid(call.name, model)}")
        try:
            return model.model_validate(dict(values))  # pyright: ignore[reportUnknownArgumentType]
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
                for fault in error.errors(include_url=False, include_input=False)
            )
            raise ValueError(f"{faults}; {_valid(call.name, model)}") from error

    def _path(self, path: str) -> str:
        """A path as the model means it: relative to the project, as in a fresh shell."""
        return path

    async def _bash(self, arguments: Bash, timeout: float) -> Observation:
        result = await self._shell.run(arguments.command, timeout=timeout)
        done = result.exec
        output = render(done.stdout, total=done.stdout_bytes, tokens=self._budget, counter=self._counter, saved_to=result.saved_to)
        text = self._prompts.render(
            "bash.j2",
            output=output,
            exit_code=done.exit_code,
            timed_out=done.timed_out,
            timeout=f"{round(timeout, 1):g}",
            notice=result.notice,
        )
        failed = done.timed_out or done.exit_code != 0
        return self._finished(text, "bash", failed=failed, exit_code=done.exit_code)

    async def _read(self, arguments: ReadFile) -> str:
        data = await self._sandbox.read_file(self._path(arguments.path), limit=EDIT_LIMIT)
        text = data.decode("utf-8", "replace").replace("\0", "\u2400")
        if arguments.start_line > 1 or arguments.line_count:
            lines = text.splitlines(keepends=True)
            first = arguments.start_line - 1
            if first >= len(lines) and lines:
                return f"[the file has {len(lines)} lines]"
            text = "".join(lines[first : first + arguments.line_count if arguments.line_count else None])
        if not text:
            return "[the file is empty]"
        return cut(text, self._budget, counter=self._counter, where=arguments.path)

    async def _edit(self, arguments: EditFile) -> None:
        path = self._path(arguments.path)
        content = await self._sandbox.read_file(path, limit=EDIT_LIMIT)
        await self._sandbox.write_file(path, replace_once(content, arguments.old_text, arguments.new_text))

    def _tests(self, verdict: Verdict) -> Observation:
        failures = [
            test.model_copy(update={"message": clean(test.message.encode("utf-8", "replace"))})
            for test in verdict.tests
            if not test.passed
        ]
        text = self._prompts.render(
            "tests.j2",
            solved=verdict.solved,
            passed=verdict.tests_passed,
            total=verdict.tests_total,
            reason=verdict.reason,
            failures=failures,
            feedback=self._feedback,
        )
        return self._finished(text, "run_tests", failed=not verdict.solved, exit_code=verdict.exit_code)

    def _finished(
        self,
        text: str,
        tool: str,
        *,
        failed: bool = False,
        valid: bool = True,
        done: bool = False,
        exit_code: int | None = None,
    ) -> Observation:
        text = cut(text.strip("\n") or "[nothing]", self._budget + SLACK_TOKENS, counter=self._counter)
        name = tool if tool in self._tools else "unknown"
        return Observation(text, name, failed, valid, done, exit_code, tokens=self._counter.count(text))


SLACK_TOKENS = 64  # for the status line under an output that fills its own budget


def _timed(observation: Observation, seconds: float) -> Observation:
    return Observation(**{**vars(observation), "seconds": seconds})


def _valid(name: str, model: type[Arguments]) -> str:
    fields = model.model_fields
    if not fields:
        return f"{name} takes no arguments: {{}}"
    parts = [f'"{key}": {_type(info.annotation)}{"" if info.is_required() else " (optional)"}' for key, info in fields.items()]
    return f"{name} takes {{{', '.join(parts)}}}"


def _type(annotation: object) -> str:
    return "integer" if annotation is int else "string"


def _plain(error: Exception) -> str:
    """An error as the model should read it: what, and which path, without Python's own dress."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)
