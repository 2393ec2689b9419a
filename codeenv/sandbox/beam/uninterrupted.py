"""Work that is brought to its end once it has begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


async def uninterrupted(
    work: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, None]] | None = None
) -> T:
    """Do it in a task of its own and wait for it. A cancellation meanwhile, also one of asyncio's own, which no shield
    keeps out, is put off until then; what the work gave goes to `undo` where nobody is left to take it."""
    task = asyncio.get_running_loop().create_task(work)
    interrupted: BaseException | None = None
    while not task.done():
        try:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])
        except asyncio.CancelledError as error:
            interrupted = error
    if interrupted is None:
        return task.result()
    if not task.cancelled() and task.exception() is None and undo is not None:
        await uninterrupted(undo(task.result()))
    raise interrupted
