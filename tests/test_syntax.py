"""The parser, from many threads."""

import ast
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from codeenv.syntax import parse

SOURCE = "\n".join(
    f"def f{number}(a, b=(1, [2, {{3: lambda x: x + {number}}}])):\n    return [a for a in b if a]"
    for number in range(60)
)


class Last:
    """Found by a collection, wherever it happens, and then runs code of its own, in which threads may take turns."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        sum(range(2000))
        for _ in range(200):
            pass


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def faults(parser: Callable[[str], ast.Module]) -> list[SystemError]:
    found: list[SystemError] = []

    def work() -> None:
        for _ in range(20):
            for _ in range(50):
                Last()
            try:
                parser(SOURCE)
            except SystemError as error:
                found.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_many_threads_may_parse_at_once(hasty: None) -> None:
    assert faults(parse) == []
