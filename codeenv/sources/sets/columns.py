"""How the columns of the sets of contest problems are read: JSON as text, Python as text, amounts with their units."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, cast

from codeenv.sources.rows import Row, RowFault
from codeenv.syntax import parse

INT_DIGITS = 4300
"""What CPython turns into an int at most: more takes time that grows with the square."""
SECONDS = {"ms": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3, "minute": 60.0, "minutes": 60.0}
MEBIBYTES = {"bytes": 2**-20, "b": 2**-20, "kilobytes": 2**-10, "kb": 2**-10, "gigabytes": 1024.0, "gb": 1024.0}
"""Units that are not the one an amount is wanted in."""


def clean(text: str, column: str) -> bytes:
    """:raises RowFault: it has null bytes, or is no valid Unicode."""
    if "\0" in text:
        raise RowFault(f"{column}: has null bytes")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RowFault(f"{column}: is not valid Unicode") from error


def parsed(value: Any, column: str, *, literal: bool = False) -> Any:
    """What a column holds that is JSON as text, or is structured already. A number with more digits than an int may
    have stays text, with a null byte in front. `literal`: may also be text as Python's `repr` writes it.

    :raises RowFault: it is neither.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_int=_whole)
    except RecursionError as error:
        raise RowFault(f"{column}: is nested too deep") from error
    except ValueError as error:
        fault = str(error)
    try:
        if literal:
            return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    raise RowFault(f"{column}: invalid JSON: {fault}")


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= INT_DIGITS else f"\0{digits}"


def mapping(value: Any, column: str) -> Mapping[str, Any]:
    """:raises RowFault: it is no object."""
    if not isinstance(value, Mapping):
        raise RowFault(f"{column}: must be an object, not {type(value).__name__}")
    return cast(Mapping[str, Any], value)


def optional(row: Mapping[str, Any], column: str) -> str:
    """A text that may be missing."""
    value = row.get(column)
    return value if isinstance(value, str) else ""


def texts(value: Any) -> list[str]:
    """The texts of a list, if it is one."""
    return [text for text in cast(list[Any], value) if isinstance(text, str)] if isinstance(value, list) else []


def unnamed(row: Row, *columns: str) -> str:
    """An id for a row that its set gives none: of what it holds, the same wherever it stands."""
    whole = json.dumps([row.get(column) for column in columns], sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def first_python(solutions: Iterable[str]) -> str | None:
    """The first that Python 3 can read: the sets have some of Python 2. Whether it is right, only running it shows."""
    for text in solutions:
        try:
            with warnings.catch_warnings(action="ignore"):
                body = parse(text).body
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if body:
            return text
    return None


def unfenced(text: str) -> str:
    """Code without the Markdown fence that some sets put around it."""
    found = re.fullmatch(r"\s*```[^\n]*\n(.*?)\n?```\s*", text, re.DOTALL)
    return found[1] if found else text


def amount(value: Any, units: Mapping[str, float]) -> float | None:
    """The number in `2.0 seconds` or `256 megabytes`, times what its unit is in `units`; None: there is none, or 0."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\.?\s*", str(value), re.IGNORECASE)
    return float(found[1]) * units.get(found[2].lower(), 1.0) or None if found else None
