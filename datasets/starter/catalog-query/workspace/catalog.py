"""Searching the catalogue."""


class QueryError(ValueError):
    """A query that cannot be understood; `pos` is where."""

    def __init__(self, message: str, pos: int):
        super().__init__(f"{message} at {pos}")
        self.pos = pos


def parse(text: str):
    """The tree of a query."""
    raise NotImplementedError


def search(text: str, records: list[dict]) -> list[dict]:
    """The records that match the query."""
    raise NotImplementedError
