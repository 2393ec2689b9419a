"""Sandboxes that each break one promise of the port: a real box in a wrapper that does one thing as a careless backend
would."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from codeenv.sandbox.api import (
    Capabilities,
    ExecResult,
    ExportTooLarge,
    Sandbox,
    SandboxExpired,
    SandboxLost,
    SandboxProvider,
    SandboxSpec,
    UnsupportedSpec,
)
from codeenv.sandbox.archive import Archive
from tests.wrapping import Wrapping


class Wrapped:
    """A box as it is."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box

    def __getattr__(self, name: str) -> Any:
        return getattr(self.box, name)

    async def exec(self, command: Any, **options: Any) -> ExecResult:
        return self.changed(await self.box.exec(command, **options))

    def changed(self, result: ExecResult) -> ExecResult:
        return result


class WrappedProvider(Wrapping):
    """Gives every box of a real backend in a wrapper, and destroys them all in the end, whatever the wrapper did."""

    def __init__(self, real: SandboxProvider, wrapper: type[Wrapped] = Wrapped) -> None:
        super().__init__(real)
        self.wrapper = wrapper
        self.boxes: list[Sandbox] = []

    async def open(self, spec: SandboxSpec) -> Any:
        box = await self.inner.open(spec)
        self.boxes.append(box)
        return self.wrapper(box)

    async def clean(self) -> None:
        for box in self.boxes:
            await box.close()


# --- commands ----------------------------------------------------------------------------------------------------


class SignalIsOne(Wrapped):
    def changed(self, result: ExecResult) -> ExecResult:
        return dataclasses.replace(result, exit_code=1) if result.exit_code > 128 else result


class Exit124IsTimeout(Wrapped):
    def changed(self, result: ExecResult) -> ExecResult:
        return dataclasses.replace(result, timed_out=result.timed_out or result.exit_code == 124)


class ArgvIsJoined(Wrapped):
    async def exec(self, command: Any, **options: Any) -> ExecResult:
        return await self.box.exec(command if isinstance(command, str) else " ".join(command), **options)


class RunsTwice(Wrapped):
    async def exec(self, command: Any, **options: Any) -> ExecResult:
        await self.box.exec(command, **options)
        return await self.box.exec(command, **options)


class MissingCwdIsAResult(Wrapped):
    async def exec(self, command: Any, **options: Any) -> ExecResult:
        try:
            return await self.box.exec(command, **options)
        except OSError as error:
            return ExecResult(1, b"", str(error).encode(), False, 0.0, 0, 0)


class InputIsDropped(Wrapped):
    async def exec(self, command: Any, **options: Any) -> ExecResult:
        return await self.box.exec(command, **{**options, "stdin": b""})


class HostsVariablesComeIn(Wrapped):
    async def exec(self, command: Any, **options: Any) -> ExecResult:
        ours = {name: value for name, value in os.environ.items() if name.startswith("CODEENV_")}
        return await self.box.exec(command, **{**options, "env": {**ours, **(options.get("env") or {})}})


# --- output ------------------------------------------------------------------------------------------------------


class OutputIsText(Wrapped):
    def changed(self, result: ExecResult) -> ExecResult:
        return dataclasses.replace(result, stdout=result.stdout.decode("utf-8", "replace").encode())


class OutputIsStripped(Wrapped):
    def changed(self, result: ExecResult) -> ExecResult:
        return dataclasses.replace(result, stdout=result.stdout.rstrip())


class OnlyTheHeadIsKept(Wrapped):
    async def exec(self, command: Any, *, output_limit: int = 65_536, **options: Any) -> ExecResult:
        result = await self.box.exec(command, output_limit=10_000_000, **options)
        return dataclasses.replace(result, stdout=result.stdout[:output_limit], stderr=result.stderr[:output_limit])


class CombinesAfterwards(Wrapped):
    async def exec(self, command: Any, *, combine: bool = False, **options: Any) -> ExecResult:
        result = await self.box.exec(command, **options)
        return dataclasses.replace(result, stdout=result.stdout + result.stderr, stderr=b"") if combine else result


class SavesOverWhatIsThere(Wrapped):
    async def exec(self, command: Any, *, save_to: str | None = None, **options: Any) -> ExecResult:
        if save_to:
            with suppress(OSError):
                await self.box.remove(save_to)
        return await self.box.exec(command, save_to=save_to, **options)


# --- how commands end ----------------------------------------------------------------------------------------------


class TimeoutIsIgnored(Wrapped):
    async def exec(self, command: Any, *, timeout: float | None = None, **options: Any) -> ExecResult:
        return await self.box.exec(command, **options)


class TimeoutLosesOutput(Wrapped):
    def changed(self, result: ExecResult) -> ExecResult:
        return dataclasses.replace(result, stdout=b"", stderr=b"") if result.timed_out else result


class TimeoutKillsTheShellAlone(Wrapped):
    async def exec(self, command: Any, *, timeout: float | None = None, **options: Any) -> ExecResult:
        if timeout is None:
            return await self.box.exec(command, **options)
        argv = ["bash", "-c", command] if isinstance(command, str) else command
        alone = f"{shlex.join(argv)} & (sleep {timeout}; kill -9 $!) > /dev/null & wait $! 2> /dev/null; wait %1"
        result = await self.box.exec(alone, **options)
        return dataclasses.replace(result, timed_out=result.exit_code == 137)


class WaitsForDaemons(Wrapped):
    async def exec(self, command: Any, **options: Any) -> ExecResult:
        return await self.box.exec(f"{command}\nwait" if isinstance(command, str) else command, **options)


class CancelledCommandsRunOn(Wrapped):
    async def exec(self, command: Any, **options: Any) -> ExecResult:
        task = asyncio.ensure_future(self.box.exec(command, **options))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)


class OneCommandAtATime(Wrapped):
    def __init__(self, box: Sandbox) -> None:
        super().__init__(box)
        self.lock = anyio.Lock()

    async def exec(self, command: Any, **options: Any) -> ExecResult:
        async with self.lock:
            return await self.box.exec(command, **options)


# --- live processes --------------------------------------------------------------------------------------------------


class ProcessesOutliveTheirBlock(Wrapped):
    def __init__(self, box: Sandbox) -> None:
        super().__init__(box)
        self.blocks: list[Any] = []

    @asynccontextmanager
    async def open_process(self, command: Any, **options: Any) -> AsyncIterator[Any]:
        manager = self.box.open_process(command, **options)
        self.blocks.append(manager)
        yield await manager.__aenter__()

    async def close(self) -> None:
        for manager in self.blocks:
            await manager.__aexit__(None, None, None)
        await self.box.close()


class ProcessesReceiveText(Wrapped):
    @asynccontextmanager
    async def open_process(self, command: Any, **options: Any) -> AsyncIterator[Any]:
        async with self.box.open_process(command, **options) as process:

            async def receive(receive: Any = process.receive) -> bytes:
                return (await receive()).decode("utf-8", "replace").encode()

            process.receive = receive  # type: ignore[method-assign]
            yield process


# --- files and archives ----------------------------------------------------------------------------------------------


class ModesAreLost(Wrapped):
    async def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        await self.box.write_file(path, data)


class LimitsAreIgnored(Wrapped):
    async def read_file(self, path: str, **_: Any) -> bytes:
        return await self.box.read_file(path)


class FilesAreText(Wrapped):
    async def write_file(self, path: str, data: bytes, **options: Any) -> None:
        await self.box.write_file(path, data.replace(b"\r\n", b"\n"), **options)


class MissingIsEmpty(Wrapped):
    async def read_file(self, path: str, **options: Any) -> bytes:
        try:
            return await self.box.read_file(path, **options)
        except FileNotFoundError:
            return b""


class ListsInAnyOrder(Wrapped):
    async def list_files(self, *args: Any, **options: Any) -> list[Any]:
        return (await self.box.list_files(*args, **options))[::-1]


class ExportsWhatTheyCan(Wrapped):
    async def export(self, *args: Any, **options: Any) -> Archive:
        try:
            return await self.box.export(*args, **options)
        except ExportTooLarge:
            return Archive()


class ExportForgetsLinks(Wrapped):
    async def export(self, *args: Any, **options: Any) -> Archive:
        archive = await self.box.export(*args, **options)
        return archive.without({entry.path for entry in archive if entry.kind == "link"})


class ExportStopsNothing(Wrapped):
    async def export(self, path: str = ".", *, stop_processes: bool = False, **options: Any) -> Archive:
        return await self.box.export(path, **options)


class ImportGoesThroughLinks(Wrapped):
    async def import_(self, archive: Archive, path: str = ".") -> None:
        for entry in archive:
            with suppress(OSError):
                await self.box.write_file(f"{path}/{entry.path}", entry.data, mode=entry.mode)


# --- life ------------------------------------------------------------------------------------------------------------


class ClosesOnce(Wrapped):
    closed = False

    async def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True
        await self.box.close()


class NeverCloses(Wrapped):
    async def close(self) -> None:
        pass


class LostIsAnotherError(Wrapped):
    async def exec(self, command: Any, **options: Any) -> ExecResult:
        try:
            return await self.box.exec(command, **options)
        except SandboxLost as error:
            raise ConnectionError(str(error)) from error


class ExpiredIsLost(Wrapped):
    async def exec(self, command: Any, **options: Any) -> ExecResult:
        try:
            return await self.box.exec(command, **options)
        except SandboxExpired as error:
            raise SandboxLost(str(error), stage=error.stage) from error


# --- backends --------------------------------------------------------------------------------------------------------


class AcceptsAnySpec(WrappedProvider):
    def check(self, spec: SandboxSpec) -> None:
        with suppress(UnsupportedSpec):
            self.inner.check(spec)


class GivesTheSameBox(WrappedProvider):
    async def open(self, spec: SandboxSpec) -> Any:
        if not self.boxes:
            self.boxes.append(await self.inner.open(spec))
        return NeverCloses(self.boxes[0])


class ForgetsTheSpec(WrappedProvider):
    async def open(self, spec: SandboxSpec) -> Any:
        return await super().open(SandboxSpec())


class LeaksWhenCancelled(WrappedProvider):
    @asynccontextmanager
    async def create(self, spec: SandboxSpec) -> AsyncIterator[Any]:
        box = await self.open(spec)
        yield box
        await box.close()


class ClaimsToIsolate(WrappedProvider):
    """Of a backend that does not."""

    @property
    def capabilities(self) -> Capabilities:
        return dataclasses.replace(self.inner.capabilities, isolation="namespaces", network_off=True)
