"""The way to the agent in a Beam box: each request is a command that the gateway runs there (`box/doors.py`)."""

from __future__ import annotations

import base64
import binascii
import errno
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from codeenv.sandbox.api import SandboxError, SandboxLost
from codeenv.sandbox.beam.container import Container
from codeenv.sandbox.beam.uninterrupted import uninterrupted
from codeenv.sandbox.box.wire import frames, pack, unpack

INLINE = 48 * 1024
"""Bytes of a request that go into the command's arguments, of which Linux takes 128 KiB each."""
WITHDRAW_SECONDS = 5.0
AT_ONCE = 24  # requests: the agent has a few more slots
MISSES = 30
"""How often in a row an answer may be lost on the way."""

ALIVE = """
if cd "$0" && [ -f call ] && [ -p door ] && read -r _ pid _ <facts && read -r stat <"/proc/$pid/stat"; then
    case $stat in *") Z "* | *") X "*) ;; *) echo alive; exit ;; esac
fi 2>/dev/null
echo gone
"""
"""Says whether the agent of a folder is there and no zombie."""


def is_whole(said: str) -> bool:
    """Whether a request's command has printed all that it will."""
    line, ended, rest = said.partition("\n")
    return bool(ended) and (not line.startswith("@") or ends(rest))


def ends(said: str) -> bool:
    return said.endswith("\n")


@dataclass
class BeamAnswer:
    data: list[list[bytes]] = field(default_factory=list[list[bytes]])
    result: list[bytes] | None = None


class BeamLine:
    """Implements `codeenv.sandbox.agent.Line`."""

    def __init__(self, container: Container, folder: str) -> None:
        self._container = container
        self._folder = folder
        self._next = 0
        self._outstanding: set[int] = set()
        self._limiter = anyio.CapacityLimiter(AT_ONCE)

    def reserve(self) -> int:
        """The number of a request to come; its answer is kept until `release`."""
        self._next += 1
        self._outstanding.add(self._next)
        return self._next

    def release(self, number: int) -> None:
        self._outstanding.discard(number)

    async def request(self, kind: bytes, fields: Sequence[bytes], *, path: str = "", cancel: bytes = b"") -> BeamAnswer:
        number = self.reserve()
        try:
            return await self.ask(number, pack(kind, number, list(fields)), path=path)
        except anyio.get_cancelled_exc_class():
            if cancel:
                await self.withdraw(cancel, number)
            raise
        finally:
            self.release(number)

    async def about(self, kind: bytes, about: int) -> BeamAnswer:
        """A request that ends an earlier one."""
        number = self.reserve()
        try:
            return await self.ask(number, pack(kind, about, []))
        finally:
            self.release(number)

    async def withdraw(self, cancel: bytes, number: int) -> None:
        """Tell the agent, in the face of any cancellation, that nobody waits for this request any longer."""
        await uninterrupted(self._withdraw(cancel, number))

    async def _withdraw(self, cancel: bytes, number: int) -> None:
        with anyio.move_on_after(WITHDRAW_SECONDS):
            try:
                await self.about(cancel, number)
            except (SandboxError, OSError):
                pass

    async def ask(self, number: int, request: bytes, *, path: str = "") -> BeamAnswer:
        """Have a request carried out once, however often it must be sent; an empty one waits for an earlier one."""
        answer = BeamAnswer()
        for kind, _, body in frames(bytearray(await self._until_answered(number, request))):
            fields = unpack(body)
            if kind == b"d":
                answer.data.append(fields)
            elif kind == b"r":
                answer.result = fields
            else:
                code = int(fields[0])
                raise OSError(code, fields[1].decode("utf-8", "replace") or os.strerror(code or errno.EIO), path)
        return answer

    async def _until_answered(self, number: int, request: bytes) -> bytes:
        big = len(request) > INLINE
        name = f"u.{number}"
        uploaded = False
        misses = 0
        delay = 0.02
        while True:
            if big and not uploaded:
                await self._container.upload(f"{self._folder}/{name}", request)
                uploaded = True
            text = f"@{len(request)} {name}" if big else base64.b64encode(request).decode()
            needed = min(self._outstanding)
            call = ["sh", f"{self._folder}/call", f"{number} {needed}", text]
            async with self._limiter:
                said = await self._container.run(call, meanwhile=self._check, whole=is_whole)
            line, whole, rest = said.partition("\n")
            try:
                if whole and line.startswith("="):
                    return binascii.a2b_base64(line[1:])
                if whole and line.startswith("@"):
                    first = [rest] if rest.endswith("\n") else []  # else cut off or lost, and it is there still
                    pieces = [binascii.a2b_base64(piece) for piece in first]
                    for piece in range(len(pieces), int(line[1:])):
                        pieces.append(await self._piece(number, piece))
                    return b"".join(pieces)
            except ValueError:
                pass  # a part of it was lost on the way: the agent has it still
            uploaded = uploaded and line != "?"
            if line != "!":
                misses += 1
                await self._missed(misses)
            await anyio.sleep(delay * random.uniform(0.5, 1.5))
            delay = min(1.0, delay * 2)

    async def _piece(self, number: int, piece: int) -> bytes:
        misses = 0
        while True:
            said = await self._container.run(["cat", f"{self._folder}/o.{number}.{piece}"], whole=ends)
            if said.endswith("\n"):
                return binascii.a2b_base64(said)
            misses += 1
            await self._missed(misses)
            await anyio.sleep(0.1)

    async def _missed(self, times: int) -> None:
        """What should have come has not, this often in a row."""
        if times % 2 == 0:
            await self._check()
        if times >= MISSES:
            raise SandboxLost("its answers do not come through", stage="connection")

    async def _check(self) -> None:
        """:raises SandboxLost: the agent is gone."""
        said = await self._container.run(["sh", "-c", ALIVE, self._folder], whole=ends)
        if said == "gone\n":
            raise SandboxLost("its agent is gone: a command has killed it, or removed its files", stage="connection")
