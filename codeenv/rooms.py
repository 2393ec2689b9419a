"""Boxes for calls that come one by one: a room is one rollout's, and a pool bounds how many of them have a box."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field, replace

import anyio

from codeenv.calls import ToolCall
from codeenv.episode import counter
from codeenv.prompts import default_prompts
from codeenv.rendering import rendered
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
