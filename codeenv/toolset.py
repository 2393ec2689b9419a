"""A safe place to run things, for somebody else's agent: boxes behind plain async functions.

    tools = sandbox_tools(max_boxes=16)
    env = vf.ToolEnv(tools=[*tools], stop_errors=[SandboxError], ...)

A call runs in a box of its own. Inside `async with tools.rollout():`, or between `enter` and `leave`, calls share one
box, which nobody else ever gets.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import anyio

from codeenv.calls import ToolCall
from codeenv.episode import counter
from codeenv.graders import PytestGrader
from codeenv.observation import MIN_TOKENS
from codeenv.prompts import default_prompts
from codeenv.rendering import rendered
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import Sandbox, SandboxExpired, SandboxLost, SandboxProvider, SandboxSpec
from codeenv.tools import Observation, Toolbox

SHORTEST_WAIT = 0.05  # seconds between two looks for a box that is idle


@dataclass(eq=False)
class Pool:
    """What the boxes are like, how many there may be, and whose they are."""

    provider: SandboxProvider
    spec: SandboxSpec
    places: anyio.Semaphore
    idle_seconds: float
    command_timeout: float
    observation_tokens: int
    rooms: dict[str, Room] = field(default_factory=dict[str, "Room"])
    closed: bool = False

    async def wait_for_place(self) -> None:
        """Until there is room for one more box, which idle ones make. The caller frees it."""
        while True:
            with anyio.move_on_after(await self._drop_idle()):
                await self.places.acquire()
                return

    async def _drop_idle(self) -> float:
        """End boxes that are idle, while there is no place but theirs; seconds until the next look is worth it."""
        wait = self.idle_seconds
        for room in list(self.rooms.values()):
            idle = room.idle_for
            if idle is None or self.places.value:
                continue
            if idle >= self.idle_seconds:
                await room.drop(f"the one before was not used for {idle:.0f} s")
            else:
                wait = min(wait, self.idle_seconds - idle)
        return max(wait, SHORTEST_WAIT)


class Room:
    """One rollout's place: its box, made when it is needed, in which one call runs at a time."""

    def __init__(self, pool: Pool, *, lasts: bool = True) -> None:
        self.closed = False
        self._pool = pool
        self._lasts = lasts
        self._calls = anyio.Lock()
        self._box: Sandbox | None = None
        self._toolbox: Toolbox | None = None
        self._used = 0.0
        self._lost = ""

    @property
    def idle_for(self) -> float | None:
        """Seconds since the last call; None: one is under way, or there is no box."""
        return None if self._box is None or self._calls.locked() else time.monotonic() - self._used

    async def run(self, command: str, *, path: str = "", text: str = "") -> str:
        """Run a command, in which `{path}` stands for a file of that name with that text, outside of the work.

        :raises SandboxError: the box could not be made or was lost. :raises RuntimeError: the room is closed.
        """
        async with self._calls:
            why = self._lost
            toolbox, scratch = await self._ready()
            try:
                if path:
                    path = f"{scratch}/{path}"
                    written = await toolbox.call(ToolCall("write_file", {"path": path, "content": text}), timeout=0)
                    if written.failed:
                        return written.text
                    place = shlex.quote(path)
                    command = f'PYTHONPATH="$PWD${{PYTHONPATH:+:$PYTHONPATH}}" {command.format(path=place)}'
                call = ToolCall("bash", {"command": command})
                seen = await toolbox.call(call, timeout=self._pool.command_timeout)
            except SandboxLost as error:
                await self.drop(
                    "the one before reached its time to live" if isinstance(error, SandboxExpired) else str(error)
                )
                raise
            finally:
                self._used = time.monotonic()
            return f"[this is a new box: {why}]\n" * bool(why) + self._said(seen)

    async def _ready(self) -> tuple[Toolbox, str]:
        if self._toolbox is None or self._box is None:
            pool = self._pool
            await pool.wait_for_place()
            try:
                self._check()
                box = await pool.provider.open(pool.spec)
            except BaseException:
                pool.places.release()
                raise
            self._box, self._lost = box, ""
            if self.closed:
                await self.drop()
            self._check()
            self._toolbox = Toolbox(
                box,
                tools=("bash", "write_file"),
                prompts=default_prompts(),
                counter=counter(),
                observation_tokens=pool.observation_tokens,
            )
            return self._toolbox, box.scratch
        return self._toolbox, self._box.scratch

    def _check(self) -> None:
        if self.closed:
            raise RuntimeError("the rollout is over, and with it its sandbox")

    def _said(self, seen: Observation) -> str:
        """Where the whole output is, is said where there will be a next call."""
        if self._lasts or seen.source is None or not seen.source.saved_to:
            return seen.text
        source = replace(seen.source, saved_to="")
        return rendered(source, default_prompts(), counter(), self._pool.observation_tokens)

    async def drop(self, why: str = "") -> None:
        """End the box; a later call gets a new one, and says why. Never raises."""
        box, self._box, self._toolbox, self._lost = self._box, None, None, why
        if box is not None:
            try:
                await box.close()
            finally:
                self._pool.places.release()

    async def close(self) -> None:
        self.closed = True
        await self.drop()


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
