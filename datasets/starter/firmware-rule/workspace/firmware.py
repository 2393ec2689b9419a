"""Which firmware may be installed."""

from collections.abc import Iterable


def matches(rule: str, version: str) -> bool:
    raise NotImplementedError


def best(rule: str, versions: Iterable[str]) -> str | None:
    raise NotImplementedError
