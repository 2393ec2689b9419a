"""A safe place to run things, for somebody else's agent: boxes behind plain async functions.

    tools = sandbox_tools(max_boxes=16)
    env = vf.ToolEnv(tools=[*tools], stop_errors=[SandboxError], ...)

A call runs in a box of its own. Inside `async with tools.rollout():`, or between `enter` and `leave`, calls share one
box, which nobody else ever gets.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

import anyio

from codeenv.episode import counter
from codeenv.graders import PytestGrader
from codeenv.observation import MIN_TOKENS
from codeenv.rooms import Pool, Room
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxProvider, SandboxSpec

# By the tools that they are of: an agent may have several. The mapping is never changed, but for another.
_entered: ContextVar[Mapping[Pool, Room] | None] = ContextVar("codeenv_rooms", default=None)


class SandboxTools:
    """`run_python`, `run_bash` and `run_tests`; iterating gives the three. Made by `sandbox_tools`.

    It is used from one event loop at a time. A box goes with its call or rollout; `close()`, or the end of an
    `async with`, ends all there are.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def __iter__(self) -> Iterator[Callable[..., Coroutine[Any, Any, str]]]:
        return iter((self.run_python, self.run_bash, self.run_tests))

    async def __aenter__(self) -> SandboxTools:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- what a model is given: frameworks read names, parameters and descriptions off these ------------------

    async def run_python(self, code: str) -> str:
        """Run a Python program in an isolated sandbox and see what it prints.

        :param code: The whole program. It can read and import the files of the working directory.
        """
        return await self._run_file("code", code, "program.py", "python3 {path}")

    async def run_bash(self, command: str) -> str:
        """Run a shell command with bash in an isolated sandbox and see what it prints.

        :param command: The command, any bash script.
        """
        async with self._room() as room:
            return await room.run(command)

    async def run_tests(self, tests: str) -> str:
        """Run tests with pytest in an isolated sandbox and see which fail, and why.

        :param tests: A test file. It imports what it tests from files of the working directory, or defines it.
        """
        return await self._run_file("tests", tests, "test_given.py", "python3 -m pytest -q -p no:cacheprovider {path}")

    async def _run_file(self, name: str, text: object, path: str, command: str) -> str:
        fault = _fault(text)
        if fault:
            return f"[failed: {name}: {fault}]"
        async with self._room() as room:
            return await room.run(command, path=path, text=str(text))

    # --- whose box -------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def rollout(self) -> AsyncGenerator[None]:
        """Calls inside, and those of tasks that are started inside, share one box, which is made at the first of them
        and gone at the end. A rollout inside a rollout has its own."""
        name, before = uuid4().hex, _entered.get()
        self.enter(name)
        try:
            yield
        finally:
            _entered.set(before)
            await self.leave(name)

    def enter(self, name: str) -> None:
        """From here on calls of the current task, and of those that it starts, are of the rollout `name`: for
        frameworks in which no `async with` can span a rollout. Its `leave` has to come.

        :raises ValueError: there is such a rollout already. :raises RuntimeError: the tools are closed.
        """
        _entered.set({**(_entered.get() or {}), self._pool: self._new(name)})

    async def leave(self, name: str) -> None:
        """End a rollout and its box, from whatever task. Idempotent, never raises."""
        room = self._pool.rooms.pop(name, None)
        if room is not None:
            await room.close()

    async def close(self) -> None:
        """End every rollout and box; a call that is under way fails. Idempotent, never raises."""
        self._pool.closed = True
        while self._pool.rooms:
            await self.leave(next(iter(self._pool.rooms)))

    def _new(self, name: str, *, lasts: bool = True) -> Room:
        if self._pool.closed:
            raise RuntimeError("the sandbox tools are closed")
        if name in self._pool.rooms:
            raise ValueError(f"there is a rollout {name!r} already, and its box is its own")
        room = self._pool.rooms[name] = Room(self._pool, lasts=lasts)
        return room

    @asynccontextmanager
    async def _room(self) -> AsyncGenerator[Room]:
        """The rollout's; outside of one, and after its end, one for this call alone."""
        room = (_entered.get() or {}).get(self._pool)
        if room is not None and not room.closed:
            yield room
            return
        name = uuid4().hex
        room = self._new(name, lasts=False)
        try:
            yield room
        finally:
            await self.leave(name)


def _fault(text: object) -> str:
    """Why a model's argument is no text that can be written to a file."""
    if not isinstance(text, str):
        return f"must be text, not {type(text).__name__}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds a lone surrogate, which is not valid Unicode"
    return ""


def sandbox_tools(
    *,
    sandbox: str | SandboxProvider = "auto",
    sandbox_settings: Mapping[str, Any] | None = None,
    spec: SandboxSpec | None = None,
    max_boxes: int = 16,
    idle_seconds: float = 120.0,
    command_timeout: float = 60.0,
    observation_tokens: int = 2000,
) -> SandboxTools:
    """Tools for an agent of any framework; the boxes come when they are needed. Blocks while it looks whether they can.

    :param sandbox: "auto", a backend by name (with `sandbox_settings`, its own), or one.
    :param spec: what boxes are: ceilings, packages, image, network, time to live. `run_tests` needs pytest, which is
        added to its packages.
    :param max_boxes: boxes alive at once; a call that would need one more waits.
    :param idle_seconds: after which without a call a rollout's box may be ended for others that wait. What was in it is
        lost, and the rollout's next call says so.
    :param command_timeout: seconds for one call.
    :param observation_tokens: budget of one call's output.
    :raises ValueError: an argument is not valid. :raises SandboxUnavailable: no such sandbox works on this host.
    """
    for name, value, least in (
        ("max_boxes", max_boxes, 1),
        ("idle_seconds", idle_seconds, 0),
        ("observation_tokens", observation_tokens, MIN_TOKENS),
    ):
        if value < least:
            raise ValueError(f"{name} must be {least} or more, not {value}")
    if command_timeout <= 0:
        raise ValueError(f"command_timeout must be over 0 seconds, not {command_timeout}")
    if not isinstance(sandbox, str) and sandbox_settings:
        raise ValueError("sandbox_settings go with a sandbox's name, and a sandbox itself was given")
    provider = get_provider(sandbox, **(sandbox_settings or {})) if isinstance(sandbox, str) else sandbox
    wanted = spec or SandboxSpec()
    wanted = wanted.model_copy(update={"packages": tuple(dict.fromkeys((*wanted.packages, *PytestGrader.needs)))})
    provider.check(wanted)
    _ = counter().exact  # settled now: loading a table would hold up a call
    places = anyio.Semaphore(max_boxes)
    return SandboxTools(Pool(provider, wanted, places, idle_seconds, command_timeout, observation_tokens))
