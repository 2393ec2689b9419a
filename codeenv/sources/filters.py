"""Choosing tasks by their metadata: `{"difficulty": ["easy", "medium"], "date": {">=": "2024-08-01"}}`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, cast

from codeenv.sources.tasks import Account, Found

Test = Callable[[object], bool]

ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPERATORS = (*ORDER, "==", "!=", "in", "not in")


class Filter:
    """Tasks all of whose named metadata are as they should be. A value is what metadata must equal, a list of such
    values, or an object of operators (`<`, `<=`, `>`, `>=`, `==`, `!=`, `in`, `not in`). Metadata that are a list fit
    when one of their items does; a task that has no such metadata fits only `!=` and `not in`. Dates are compared as
    ISO text.

    :raises ValueError: an operator is unknown, or its value is of a wrong form.
    """

    def __init__(self, wanted: Mapping[str, Any]) -> None:
        self._tests = {key: _test(key, value) for key, value in wanted.items()}

    def of(self, found: Iterable[Found], account: Account) -> Iterator[Found]:
        """Those that fit; the others are counted.

        :raises ValueError: no task of those that were looked at has such metadata, or values cannot be compared; the
            message lists what there is.
        """
        if not self._tests:
            yield from found
            return
        seen: dict[str, set[str]] = {}
        for entry, task in found:
            for key, value in task.metadata.items():
                kinds = seen.setdefault(key, set())
                if len(kinds) < 8:
                    kinds.add(str(value)[:40])
            if all(self._fits(key, task.metadata) for key in self._tests):
                yield entry, task
            else:
                account.left_out["filter"] += 1
        if unknown := [key for key in self._tests if key not in seen]:
            there = "; ".join(f"{key} ({', '.join(sorted(values))}...)" for key, values in sorted(seen.items()))
            raise ValueError(f"filter: no task has {', '.join(map(repr, unknown))}; they have: {there or 'nothing'}")

    def _fits(self, key: str, metadata: Mapping[str, Any]) -> bool:
        return self._tests[key](_plain(metadata.get(key)))


def _plain(value: object) -> object:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in cast(Iterable[object], value)]
    return value


def _test(key: str, wanted: object) -> Test:
    if isinstance(wanted, Mapping):
        tests = [_compared(key, str(name), value) for name, value in cast(Mapping[object, object], wanted).items()]
        return lambda value: all(test(value) for test in tests)
    plain = _plain(wanted)
    return _compared(key, "in" if isinstance(plain, list) else "==", cast(object, plain))


def _compared(key: str, name: str, wanted: object) -> Test:
    wanted = _plain(wanted)
    if name in ("in", "not in"):
        if not isinstance(wanted, list):
            raise ValueError(f"filter: {key}: {name!r} needs a list")
        choices = cast(list[object], wanted)
        return lambda value: any(item in choices for item in _items(value)) == (name == "in")
    if name in ("==", "!="):
        return lambda value: (wanted in _items(value) or value == wanted) == (name == "==")
    if name not in ORDER:
        raise ValueError(f"filter: {key}: unknown operator {name!r}; valid: {', '.join(OPERATORS)}")
    compare = ORDER[name]

    def test(value: object) -> bool:
        try:
            return any(item is not None and compare(item, wanted) for item in _items(value))
        except TypeError:
            raise ValueError(f"filter: {key}: {value!r} cannot be compared with {wanted!r} by {name!r}") from None

    return test


def _items(value: object) -> Sequence[object]:
    return cast(Sequence[object], value) if isinstance(value, list) else [value]
