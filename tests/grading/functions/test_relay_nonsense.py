"""What the tests' side makes of messages that no honest solution sends: an error, never an object that it did not mean
to make, never a call of anything."""

# ruff: noqa: E501 - tables: one case a line

from __future__ import annotations

import os
import socket
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeenv.grading.functions.box.codec import CannotCross, Decoder, Encoder, Shared
from codeenv.grading.functions.box.peer import Peer
from codeenv.grading.functions.box.standin import Remote, RemoteFunction, RemoteType
from codeenv.grading.functions.box.tests import Tests
from codeenv.grading.functions.relay import MESSAGE_LIMIT, BrokenFrame, frames


class Thing:
    def __init__(self) -> None:
        self.name = "thing"


def messages() -> list[bytes]:
    """Honest ones, of every tag and every kind of handle."""
    one, other = socket.socketpair()
    peer = Peer(one.fileno(), 1, 1)
    error = ValueError("x", [1])
    error.__cause__ = KeyError(2)
    values: list[Any] = [
        (True, [1, "a", 2.5, None, {"k": (1, 2)}, {3}, b"x", bytearray(b"y"), 2**99, 1j, range(3), frozenset({1})]),
        (True, list(range(9)), [0.5] * 5, ["ab"] * 5),
        (True, Thing()), (True, Thing), (True, messages), (True, len), (True, OSError(2, "x", "f")), (False, error),
        (True, __import__("collections").deque([1], 3)), (True, __import__("decimal").Decimal("1.5")),
        (True, __import__("collections").namedtuple("Row", "a b")(1, 2)),
    ]  # fmt: skip
    made = [Encoder(Shared(1), peer.foreign).message(value) for value in values]
    one.close()
    other.close()
    return made


MESSAGES = messages()
PLAIN = (type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, bytearray, range, BaseException,
         Remote, RemoteType, RemoteFunction, type, type(len), type(...), type(NotImplemented))  # fmt: skip


@pytest.fixture(scope="module")
def tests_side() -> Any:
    one, other = socket.socketpair()
    yield Tests(one.fileno(), {"solution"}, set())
    one.close()
    other.close()


@settings(max_examples=1500, deadline=None)
@given(data=st.data())
def test_a_garbled_message_is_refused_or_harmless(tests_side: Tests, data: st.DataObject) -> None:
    message = bytearray(data.draw(st.sampled_from(MESSAGES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(message)))
        cut = data.draw(st.integers(0, 5))
        message[at : at + cut] = data.draw(
            st.binary(max_size=6) | st.sampled_from([b"@\0\0\0\0", b"M", b"H", b"t*\2\0\0\0"])
        )
    tests_side.classes.clear()
    try:
        value = Decoder(bytes(message), Shared(0), tests_side).message()
    except CannotCross:
        return
    assert isinstance(value, PLAIN) or type(value).__module__ in ("collections", "decimal")


def text(value: str) -> bytes:
    return b"s" + struct.pack("<I", len(value)) + value.encode()


def sequence(*items: bytes) -> bytes:
    return b"t*" + struct.pack("<I", len(items)) + b"".join(items)


NOTHING = struct.pack("<I", 0)
CLASS = sequence(b"i" + struct.pack("<q", 3), *map(text, ("Big", "m", "Big")), b"N", sequence(text("tuple")),
                 sequence(), sequence(), text("own"), b"N", b"N")  # fmt: skip
ONE = b"i" + struct.pack("<q", 1)
ENDLESS = b"r" + b"".join(b"i" + struct.pack("<q", n) for n in (0, 10**12, 1))


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(NOTHING + sequence(*[b"T"] * 3)[:-1], id="cut-off"),
        pytest.param(NOTHING + b"TT", id="left-over"),
        pytest.param(NOTHING + b"t*" + struct.pack("<I", 2**31), id="count"),
        pytest.param(NOTHING + b"t*\1\0\0\0" * 5000 + b"N", id="deep"),
        pytest.param(NOTHING + b"@\7\0\0\0", id="unknown-container"),
        pytest.param(NOTHING + b"M" + b"i" + struct.pack("<q", 1), id="not-handed-over"),
        pytest.param(NOTHING + b"H" + sequence(text("builtin"), text("eval")), id="eval"),
        pytest.param(NOTHING + b"H" + sequence(text("builtin"), text("open")), id="open"),
        pytest.param(NOTHING + b"H" + sequence(text("builtin"), text("__import__")), id="import"),
        pytest.param(NOTHING + b"H" + sequence(text("named"), text("os"), text("system")), id="named"),
        pytest.param(NOTHING + b"H" + sequence(text("module"), text("os"), b"F"), id="module"),
        pytest.param(NOTHING + b"H" + sequence(text("class"), text("unittest.case:SkipTest")), id="skip-test"),
        pytest.param(NOTHING + b"H" + sequence(text("class"), text("subprocess:Popen")), id="no-exception"),
        pytest.param(NOTHING + b"H" + sequence(text("error"), b"i" + struct.pack("<q", 1), text("int"), *[b"N"] * 6), id="error"),
        pytest.param(NOTHING + b"L" + text("os.system") + sequence(text("true")), id="library"),
        pytest.param(NOTHING + b"G" + text("O") + b"b" + struct.pack("<I", 8) + b"\1" * 8, id="object-scalar"),
        pytest.param(
            NOTHING + b"H" + sequence(text("object"), b"i" + struct.pack("<q", 9), CLASS, b"N", sequence(text("tuple"), ENDLESS)),
            id="endless-tuple",
        ),
        pytest.param(struct.pack("<II", 1, 5) + b"A" + sequence(text("<i8"), sequence(b"i" + struct.pack("<q", 10**12))) + b"N", id="huge-array"),
        pytest.param(struct.pack("<II", 1, 5) + b"?" + b"N", id="unknown-kind"),
        pytest.param(struct.pack("<II", 1, 5) + b"y" + b"N" + ENDLESS, id="endless-bytes"),
        pytest.param(NOTHING + b"H" + sequence(text("error"), ONE, text("ValueError"), ENDLESS, *[b"N"] * 5), id="endless-arguments"),
        pytest.param(NOTHING + b"H" + sequence(text("class"), sequence(ONE, *[text("x")] * 3, b"N", sequence(), ENDLESS)), id="endless-names"),
    ],
)  # fmt: skip
def test_a_made_up_message_is_refused(tests_side: Tests, message: bytes) -> None:
    with pytest.raises(CannotCross):
        Decoder(message, Shared(0), tests_side).message()


def test_a_frame_that_is_announced_too_large_is_refused_before_it_has_come() -> None:
    with pytest.raises(BrokenFrame, match="more than"):
        list(frames(bytearray(struct.pack("<IcIH", MESSAGE_LIMIT + 1, b"R", 1, 0))))


def test_what_the_solution_may_not_ask_of_the_tests(tests_side: Tests) -> None:
    from functools import partial

    def secret() -> int:
        return 42

    get, put = tests_side.operation("get"), tests_side.operation("set")
    for value, name in [
        (secret, "__globals__"), (secret, "__code__"), (Thing(), "__dict__"), (Thing(), "_x"), (Thing, "mro"), (os, "environ"),
        (partial(secret, 1), "args"), ((n for n in ()), "gi_frame"), (ValueError(), "__traceback__"),
        (pytest.importorskip("unittest.mock").Mock(), "assert_called"),
    ]:  # fmt: skip
        with pytest.raises(AttributeError):
            get(value, name)
    for name, new in [("name", secret), ("__class__", Thing), ("missing", len)]:
        with pytest.raises(AttributeError):
            put(Thing(), name, new)
    for operation in ("import", "module_get", "dir", "states", "copy", "delete", "anything"):
        with pytest.raises(CannotCross):
            tests_side.operation(operation)
