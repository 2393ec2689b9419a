"""What a policy may do: the one place where calls become actions, and what it sees of them.

Every call gets exactly one observation. A call that cannot be understood runs nothing and is told what would be valid.
"""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from codeenv.calls import (
    TOOLS,
    Bash,
    EditFile,
    ReadFile,
    RunTests,
    ToolCall,
    WriteFile,
    definitions,
    select_tools,
    shortened,
    understand,
)  # fmt: skip
from codeenv.editing import EditError, replace_once
from codeenv.grading.verdict import Verdict
from codeenv.observation import TokenCounter
from codeenv.prompts import Prompts
from codeenv.rendering import Source, rendered
from codeenv.sandbox.api import MiB, Sandbox
from codeenv.shell import Shell

__all__ = ["TOOLS", "Observation", "ToolCall", "Toolbox", "definitions", "select_tools"]

EDIT_LIMIT = 8 * MiB
SHOWN_FAILURES = 20  # of `run_tests`, each with the beginning of its message
SHOWN_MESSAGE = 400


@dataclass(frozen=True)
class Observation:
    """What the policy sees of one call. `failed`: it was not valid, or ended other than well. `seconds`: how long it
    took."""

    text: str
    tool: str
    failed: bool = False
    valid: bool = True
    done: bool = False
    exit_code: int | None = None
    seconds: float = 0.0
    tokens: int = 0
    source: Source | None = field(default=None, repr=False)
    """What `text` was made of. None: it is all there is."""
    verdict: Verdict | None = field(default=None, repr=False)
    """Of `run_tests`, with all that the policy may not see."""

    def _repr_html_(self) -> str:
        from codeenv.html import styled

        return styled("observation", observation=self)


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
        run_tests: Callable[[], Awaitable[Verdict]] | None = None,
        feedback: str = "counts",
    ) -> None:
        if run_tests is None and "run_tests" in tools:
            raise ValueError("tools: run_tests has nothing to run")
        self._sandbox = sandbox
        self.shell = Shell(sandbox)
        self._tools = tuple(tools)
        self._prompts = prompts
        self._counter = counter
        self._budget = observation_tokens
        self._run_tests = run_tests
        self._feedback = feedback

    @property
    def cwd(self) -> str:
        """The shell's directory."""
        return self.shell.cwd

    async def call(self, call: ToolCall, *, timeout: float) -> Observation:
        """Run one call, a command for at most `timeout` seconds, and say what happened.

        :raises SandboxError: the box is lost or broke; everything else that can go wrong is an observation.
        """
        started = time.monotonic()
        try:
            arguments = understand(call, self._tools)
        except ValueError as error:
            source = Source("invalid.j2", {"fault": str(error)})
            return self._finished(source, call.name, failed=True, valid=False)
        try:
            match arguments:
                case Bash():
                    observation = await self._bash(arguments, timeout)
                case ReadFile():
                    observation = self._finished(await self._read(arguments), call.name)
                case WriteFile():
                    data = arguments.content.encode()
                    await self._sandbox.write_file(arguments.path, data)
                    observation = self._finished(f"wrote {len(data)} bytes to {arguments.path}", call.name)
                case EditFile():
                    await self._edit(arguments)
                    observation = self._finished(f"edited {arguments.path}", call.name)
                case RunTests() if self._run_tests is not None:
                    observation = self._tests(await self._run_tests())
                case _:
                    observation = self._finished("submitted", call.name, done=True)
        except (OSError, EditError, ValueError) as error:
            observation = self._finished(f"[failed: {_plain(error)}]", call.name, failed=True)
        return replace(observation, seconds=time.monotonic() - started)

    async def _bash(self, arguments: Bash, timeout: float) -> Observation:
        result = await self.shell.run(arguments.command, timeout=timeout)
        done = result.exec
        values = {
            "exit_code": done.exit_code,
            "timed_out": done.timed_out,
            "timeout": f"{round(timeout, 1):g}",
            "notice": result.notice,
        }
        source = Source("bash.j2", values, output=done.stdout, output_bytes=done.stdout_bytes, saved_to=result.saved_to)
        failed = done.timed_out or done.exit_code != 0
        return self._finished(source, "bash", failed=failed, exit_code=done.exit_code)

    async def _read(self, arguments: ReadFile) -> Source | str:
        data = await self._content(arguments.path)
        if b"\0" in data:
            raise ValueError(f"{arguments.path} is a binary file of {len(data)} bytes; look at it with bash")
        text = data.decode("utf-8", "replace")
        if arguments.start_line > 1 or arguments.line_count:
            lines = _LINE.findall(text)
            first = arguments.start_line - 1
            if first >= len(lines) and lines:
                return f"[the file has {len(lines)} lines]"
            text = "".join(lines[first : first + arguments.line_count if arguments.line_count else None])
        return Source(text=text, where=arguments.path) if text else "[the file is empty]"

    async def _edit(self, arguments: EditFile) -> None:
        content = await self._content(arguments.path)
        await self._sandbox.write_file(arguments.path, replace_once(content, arguments.old_text, arguments.new_text))

    async def _content(self, path: str) -> bytes:
        try:
            return await self._sandbox.read_file(path, limit=EDIT_LIMIT)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise ValueError(f"{path} is too large for this tool (over {EDIT_LIMIT} bytes); use bash") from error
            raise

    def _tests(self, verdict: Verdict) -> Observation:
        failures = [test for test in verdict.tests if not test.passed]
        # What the policy may not see is no part of what the observation is made of: that is recorded.
        listed = failures[:SHOWN_FAILURES] if self._feedback == "messages" else []
        shown = [
            {"id": shortened(test.id, SHOWN_MESSAGE), "message": shortened(test.message, SHOWN_MESSAGE)}
            for test in listed
        ]
        values = {
            "solved": verdict.solved,
            "passed": verdict.tests_passed,
            "total": verdict.tests_total,
            "reason": verdict.reason,
            "failures": shown,
            "more_failures": len(failures) - len(shown),
            "feedback": self._feedback,
        }
        done = self._finished(
            Source("tests.j2", values), "run_tests", failed=not verdict.solved, exit_code=verdict.exit_code
        )
        return replace(done, verdict=verdict)

    def _finished(
        self,
        said: Source | str,
        tool: str,
        *,
        failed: bool = False,
        valid: bool = True,
        done: bool = False,
        exit_code: int | None = None,
    ) -> Observation:
        source = Source(text=said) if isinstance(said, str) else said
        text = rendered(source, self._prompts, self._counter, self._budget)
        name = tool if tool in self._tools else "unknown"
        kept = None if isinstance(said, str) else said
        return Observation(text, name, failed, valid, done, exit_code, tokens=self._counter.count(text), source=kept)


_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def _plain(error: Exception) -> str:
    """An error as the model should read it: what, and which path, without Python's own dress."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)
