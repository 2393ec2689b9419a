"""What a call asked for, and what of its result the policy did not see."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from codeenv.html.text import was_cut


@dataclass(frozen=True)
class Asked:
    """`subject`: the path or the like that a call is about. `command`: what was run. `more`: other arguments, by name.
    `raw`: the arguments as they came, where they are no object."""

    subject: str = ""
    command: str = ""
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    raw: str = ""


def asked(result: Any) -> Asked:
    """Of anything that may have `arguments`: an object, or the text of one."""
    found: Any = getattr(result, "arguments", None)
    if isinstance(found, str):
        try:
            plain: Any = json.loads(found)
        except (ValueError, RecursionError):
            return Asked(raw=found)
        if not isinstance(plain, dict):
            return Asked(raw=found)
        found = cast("dict[str, Any]", plain)
    if not isinstance(found, Mapping):
        return Asked()
    more = {str(key): _plain(value) for key, value in cast("Mapping[Any, Any]", found).items()}
    return Asked(subject=more.pop("path", ""), command=more.pop("command", ""), more=more)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True)
class Whole:
    """A result before it was cut: its beginning and, after `missing` bytes that nobody kept, its end."""

    head: str
    tail: str = ""
    missing: int = 0
    size: int = 0


def uncut(result: Any) -> Whole | None:
    """What there is of a result that was cut. None: it was not, or nothing more is known of it."""
    made_of: Any = getattr(result, "raw", None) or getattr(result, "source", None)
    if made_of is None or not was_cut(result.text):
        return None
    if made_of.text:
        return Whole(made_of.text, size=len(made_of.text.encode("utf-8", "replace")))
    data = _bytes(made_of.output)
    if not data:
        return None
    total = max(made_of.output_bytes, len(data))
    if total == len(data):
        return Whole(data.decode("utf-8", "replace"), size=total)
    half = len(data) - len(data) // 2
    head, tail = data[:half], data[half:]
    return Whole(head.decode("utf-8", "replace"), tail.decode("utf-8", "replace"), total - len(data), total)


def _bytes(data: Any) -> bytes:
    """Of a recording's `Data`, or bytes already. What is no base64 is nothing."""
    if data is None or isinstance(data, bytes):
        return data or b""
    if data.base64 is None:
        return (data.text or "").encode("utf-8", "replace")
    try:
        return data.bytes
    except ValueError:
        return b""


FILTERS: dict[str, Callable[..., Any]] = {one.__name__: one for one in (asked, uncut)}
