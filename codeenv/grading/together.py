"""Several things at once, whose failure is an error like any other and no group of errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


async def together(*works: Callable[[], Awaitable[T]]) -> list[T]:
    """What each gives, in their order. The first `Exception` of any ends the others and is raised as it is."""
    results: dict[int, T] = {}
    failures: list[Exception] = []
    async with anyio.create_task_group() as group:

        async def one(number: int, work: Callable[[], Awaitable[T]]) -> None:
            try:
                results[number] = await work()
            except Exception as error:  # raised in here it would leave as a group
                failures.append(error)
                group.cancel_scope.cancel()

        for number, work in enumerate(works):
            group.start_soon(one, number, work)
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(works))]
