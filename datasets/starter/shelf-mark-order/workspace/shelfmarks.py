"""Ordering of shelf marks."""

from collections.abc import Iterable


def shelf_key(mark: str):
    """A sort key for one shelf mark."""
    raise NotImplementedError


def sort_marks(marks: Iterable[str]) -> list[str]:
    """The marks in shelf order, as a new list."""
    raise NotImplementedError
