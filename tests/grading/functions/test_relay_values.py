"""Plain values to a solution and back: the tests' side in this process, the real relay, a process in a real box."""

from __future__ import annotations

import math
import socket
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from codeenv.grading.functions.box.peer import Fault
from codeenv.grading.functions.box.tests import Tests
from codeenv.grading.functions.relay import Relay
from codeenv.sandbox.api import SandboxSpec, UnsupportedSpec
from codeenv.sandbox.process import LocalProcess
from tests.conftest import provider_or_skip

SOLUTION = b"""
def same(value): return value
def shape(value): return [type(value).__module__, type(value).__qualname__]
def is_same(one, other): return one is other
def fill(value, new):
    if type(value) is list: value[:] = new
    elif type(value) is set: value.clear(); value.update(new)
    elif type(value) is bytearray: value[:] = new
    else: value.clear(); value.update(new)
def nest(depth):
    value = ()
    for _ in range(depth): value = (value,)
    return value
def big(size): return b"x" * size
def add_to(first, second): first.append(1); second.append(2)
def loop(value): value.append(value); return value
def show(value, tell): value.append(1); tell(); value.append(3); return list(value)
"""


async def nothing() -> Any:
    await anyio.sleep_forever()


@contextmanager
def relayed(files: dict[str, bytes], names: set[str], **boxes: Any) -> Iterator[Tests]:
    provider = provider_or_skip("bubblewrap")
    ours, theirs = socket.socketpair()
    peer = Tests(ours.fileno(), names, {__name__})

    async def serve(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with (
            provider.create(SandboxSpec(**boxes)) as box,
            LocalProcess.over(theirs, nothing, nothing) as process,
        ):
            for name, data in files.items():
                await box.write_file(name, data)
            task_status.started()
            relay = Relay(box, 5.0, lambda record: None)
            async with relay.open():
                await relay.run(process)

    with start_blocking_portal() as portal:
        running, _ = portal.start_task(serve)
        sys.meta_path.append(peer)  # type: ignore[arg-type]
        try:
            yield peer
        finally:
            sys.meta_path.remove(peer)  # type: ignore[arg-type]
            for name in [name for name in sys.modules if name.partition(".")[0] in names]:
                del sys.modules[name]
            ours.shutdown(socket.SHUT_RDWR)
            running.result(10)
            ours.close()


@pytest.fixture(scope="module")
def there() -> Iterator[ModuleType]:
    """The solution's module, as the tests see it."""
    with relayed({"solution_of_values.py": SOLUTION}, {"solution_of_values"}):
        import solution_of_values  # type: ignore[import-not-found]

        yield solution_of_values


def alike(one: Any, other: Any) -> bool:
    """Equal in type and value, down to the bits of floats."""
    if type(one) is not type(other):
        return False
    if type(one) is float:
        return struct.pack("d", one) == struct.pack("d", other) or (math.isnan(one) and math.isnan(other))
    if type(one) is complex:
        return alike(one.real, other.real) and alike(one.imag, other.imag)
    if type(one) in (list, tuple, deque):
        same_limit = getattr(one, "maxlen", 0) == getattr(other, "maxlen", 0)
        return same_limit and len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return alike(list(one), list(other)) and alike(list(one.values()), list(other.values()))
    if isinstance(one, set | frozenset):
        return sorted(map(canonical, one)) == sorted(map(canonical, other))
    if type(one) in (datetime, time):
        zones = (str(one.tzinfo), str(other.tzinfo), type(one.tzinfo), type(other.tzinfo))
        fields = one.replace(tzinfo=None) == other.replace(tzinfo=None) and one.fold == other.fold
        return fields and zones[0] == zones[1] and zones[2] is zones[3]
    return repr(one) == repr(other)


def canonical(value: Any) -> str:
    """A repr that does not depend on the order of sets."""
    if isinstance(value, tuple | frozenset):
        parts = [canonical(item) for item in value]
        return f"{type(value).__name__}{parts if isinstance(value, tuple) else sorted(parts)}"
    return repr(value)


ZONES = st.one_of(
    st.none(),
    st.just(UTC),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))),
    st.sampled_from(["Europe/Paris", "America/St_Johns", "UTC"]).map(ZoneInfo),
)
TEXT = st.text(st.characters(categories=None, codec=None), max_size=8) | st.sampled_from(["\ud800\udfff", "\0"])
HASHABLE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(2**300), 2**300), st.floats(), st.complex_numbers(), TEXT,
    st.binary(max_size=8), st.decimals().filter(lambda d: not d.is_snan()), st.fractions(), st.dates(), st.timedeltas(),
    st.times(timezones=ZONES.filter(lambda z: not isinstance(z, ZoneInfo))), st.uuids(),
    st.datetimes(timezones=ZONES, allow_imaginary=False), st.just(...),
    st.builds(range, st.integers(), st.integers(), st.integers(1, 9)),
)  # fmt: skip
KEYS = HASHABLE | st.tuples(HASHABLE, HASHABLE) | st.frozensets(HASHABLE, max_size=3)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=5),
        st.lists(st.integers(-(2**64), 2**64), max_size=8),
        st.lists(st.floats(), max_size=8),
        st.lists(TEXT, max_size=8),
        st.tuples(inner, inner),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(KEYS, max_size=4),
        st.frozensets(KEYS, max_size=4),
        st.binary(max_size=6).map(bytearray),
        st.builds(deque, st.lists(inner, max_size=3), st.none() | st.integers(0, 5)),
        st.dictionaries(KEYS, inner, max_size=3).map(OrderedDict),
        st.lists(TEXT, max_size=4).map(Counter),
        st.dictionaries(TEXT, inner, max_size=3).map(lambda found: defaultdict(list, found)),
    )


@settings(max_examples=400, deadline=None)
@given(value=st.recursive(KEYS, nested, max_leaves=25))
def test_any_nested_plain_value_comes_back_as_it_was(there: ModuleType, value: Any) -> None:
    back = there.same(value)
    assert alike(back, value), (back, value)


@pytest.mark.parametrize(
    "value",
    [Decimal("sNaN12"), Decimal("-0"), float("-inf"), -0.0, 10**4000, "\udc80", UUID(int=3), Fraction(-1, 3),
     date(1, 1, 1), range(5, 0, -2), frozenset({(1, ("a",))}), NotImplemented],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_the_solution_sees_the_same_type_and_value(there: ModuleType, value: Any) -> None:
    assert there.shape(value) == [type(value).__module__, type(value).__qualname__]
    assert repr(there.same(value)) == repr(value)


def test_numpy(there_with_numpy: ModuleType) -> None:
    numpy = pytest.importorskip("numpy")
    arrays = [
        numpy.arange(12).reshape(3, 4)[:, ::2], numpy.array(3.5), numpy.zeros((0, 4), "f4"), numpy.array(["ab", "c"]),
        numpy.array([1 + 2j]), numpy.array(["2020-01-02"], "datetime64[D]"), numpy.ones((2, 2), bool),
        numpy.arange(5, dtype=">i2"),
    ]  # fmt: skip
    for array in arrays:
        back = there_with_numpy.same(array)
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        assert numpy.array_equal(back, array)
    for scalar in [numpy.float32(0.1), numpy.int8(-3), numpy.str_("é"), numpy.bool_(True), numpy.datetime64("NaT")]:
        back = there_with_numpy.same(scalar)
        assert type(back) is type(scalar)
        assert repr(back) == repr(scalar)
    given_away = numpy.zeros(3)
    there_with_numpy.put(given_away, 1, 7.0)
    assert given_away.tolist() == [0, 7, 0]
    with pytest.raises(Fault, match="numpy array of object"):
        there_with_numpy.same(numpy.array([object()]))


@pytest.fixture
def there_with_numpy() -> Iterator[ModuleType]:
    pytest.importorskip("numpy")

    files = {
        "with_numpy.py": b"import numpy\ndef same(value): return value\ndef put(array, at, value): array[at] = value\n"
    }
    try:
        provider_or_skip("bubblewrap").check(SandboxSpec(packages=("numpy",)))
    except UnsupportedSpec as error:
        pytest.skip(f"no numpy for a box: {error}")
    with relayed(files, {"with_numpy"}, packages=("numpy",)):
        import with_numpy  # type: ignore[import-not-found]

        yield with_numpy


# --- what a call shares -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "new"),
    [([1, [2]], [3, {"a": 4}]), ({1: 2}, {"x": [1]}), ({1, 2}, {(3,), 4}), (bytearray(b"ab"), bytearray(b"xyz")),
     (OrderedDict(b=1), OrderedDict(a=2)), (defaultdict(int, a=1), {"b": 3}), (deque([1]), [])],
    ids=["list", "dict", "set", "bytearray", "ordered", "default", "deque"],
)  # fmt: skip
def test_what_a_function_does_to_its_argument_is_seen(there: ModuleType, value: Any, new: Any) -> None:
    if isinstance(value, deque):
        there.add_to(value, value)
        assert list(value) == [1, 1, 2]
        return
    there.fill(value, new)
    assert value == type(value)(new) if not isinstance(value, defaultdict) else dict(value) == new


def test_two_names_for_one_list_stay_one_and_what_comes_back_is_what_was_given(there: ModuleType) -> None:
    shared: list[int] = []
    there.add_to(shared, shared)
    assert shared == [1, 2]
    assert there.same(shared) is shared
    assert there.same({"a": shared})["a"] is shared
    assert there.is_same(shared, shared) is True
    assert there.is_same([shared], [shared]) is False
    one, other = [], []
    there.add_to(one, other)
    assert (one, other) == ([1], [2])


def test_a_list_that_holds_itself(there: ModuleType) -> None:
    value: list[Any] = []
    back = there.loop(value)
    assert back is value
    assert value[0] is value


def test_a_callback_sees_what_has_been_done_so_far_and_may_do_more(there: ModuleType) -> None:
    value: list[int] = []
    seen: list[list[int]] = []

    def tell() -> None:
        seen.append(list(value))
        value.append(2)

    assert there.show(value, tell) == [1, 2, 3]
    assert (value, seen) == ([1, 2, 3], [[1]])


# --- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(lambda there: there.nest(150), "tuples nested more than 100 deep", id="tuples-back"),
        pytest.param(lambda there: there.same(deep_tuple(150)), "tuples nested more than 100 deep", id="tuples-there"),
        pytest.param(lambda there: there.same(deep_list(1500)), "containers nested more than 1000 deep", id="lists"),
        pytest.param(lambda there: there.big(17_000_000), "more than 16777216 bytes", id="size-back"),
        pytest.param(lambda there: there.same(b"x" * 17_000_000), "more than 16777216 bytes", id="size-there"),
        pytest.param(lambda there: there.same(memory()), "cannot pass a frame", id="frame"),
        pytest.param(lambda there: there.same(coroutine()), "cannot pass a coroutine", id="coroutine"),
        pytest.param(lambda there: there.same(math), "cannot pass a module", id="module"),
    ],
)
def test_what_is_too_deep_or_too_large_or_no_value_is_named(there: ModuleType, make: Any, says: str) -> None:
    with pytest.raises(Fault, match=says):
        make(there)
    assert there.same([1]) == [1]
    assert there.same(deep_tuple(90)) == deep_tuple(90)


def deep_tuple(depth: int) -> tuple[Any, ...]:
    value: tuple[Any, ...] = ()
    for _ in range(depth):
        value = (value,)
    return value


def deep_list(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def memory() -> Any:
    return sys._getframe()


def coroutine() -> Any:
    async def never() -> None: ...

    made = never()
    made.close()
    return made
