"""Something done with each of many recordings, a few at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from codeenv.record.folder import ENDING, INDEX
from codeenv.sandbox.api import SandboxError

T = TypeVar("T")

FAULTS = (SandboxError, ValueError, OSError)
"""What is wrong with one recording, its task or its box, and no reason not to go on with the others."""


def recordings_at(path: str | Path) -> list[Path]:
    """The file, or the folder's recordings in order of name.

    :raises FileNotFoundError: there is none. :raises ValueError: the folder has no recordings.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.iterdir() if each.name.endswith(ENDING) and each.name != INDEX)
    if not found:
        raise ValueError(f"{path}: has no recordings, which are files that end in {ENDING}")
    return found


@asynccontextmanager
async def each(
    paths: Sequence[Path], work: Callable[[Path], Awaitable[T]], jobs: int
) -> AsyncGenerator[AsyncIterator[tuple[Path, T | Exception]]]:
    """Do `work` for every path, at most `jobs` at a time; the block's value yields what came of each as it is done: a
    value, or one of `FAULTS`."""
    send, receive = anyio.create_memory_object_stream[tuple[Path, T | Exception]](jobs)
    give, take = anyio.create_memory_object_stream[Path](len(paths))
    for path in paths:
        give.send_nowait(path)
    give.close()
    async with anyio.create_task_group() as group, receive:
        async with send, take:
            for _ in range(min(jobs, len(paths))):
                group.start_soon(_worker, take.clone(), work, send.clone())
        yield receive
        group.cancel_scope.cancel()  # a caller that left early wants no more


async def _worker(
    take: MemoryObjectReceiveStream[Path],
    work: Callable[[Path], Awaitable[T]],
    send: MemoryObjectSendStream[tuple[Path, T | Exception]],
) -> None:
    async with take, send:
        async for path in take:
            try:
                done: T | Exception = await work(path)
            except FAULTS as error:
                done = error
            await send.send((path, done))
