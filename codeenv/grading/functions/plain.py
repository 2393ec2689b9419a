"""The codec of the boxes, for what we ourselves say to the tests' process and hear from it: plain values only."""

from __future__ import annotations

from typing import Any, cast

from codeenv.grading.functions.box import codec

CannotCross = codec.CannotCross


class _NoHandles:
    def own(self, number: object) -> object:
        raise CannotCross("a handle")

    made = own


def _refuse(value: object) -> tuple[bytes, object]:
    raise CannotCross(f"a {type(value).__name__}")


def encode(value: object) -> bytes:
    """:raises CannotCross: it is no plain value."""
    return cast(bytes, cast(Any, codec.Encoder)(codec.Shared(0), _refuse).message(value))


def decode(body: bytes) -> object:
    """:raises CannotCross: it is no message, or holds a handle."""
    return cast(Any, codec.Decoder)(body, codec.Shared(1), _NoHandles()).message()
