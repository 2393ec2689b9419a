"""A run's recordings, looked at: which policy got how far on which task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import overload

from codeenv.html import styled
from codeenv.record.folder import Listing
from codeenv.record.reading import Recording
from codeenv.record.schema import Summary


class Run(Sequence[Summary]):
    """The episodes of a folder of recordings, a `Summary` each, as they are now.

    :raises FileNotFoundError: there is no such folder.
    """

    def __init__(self, folder: str | Path) -> None:
        listing = Listing(folder)
        self.folder = listing.folder
        self._rows = sorted(listing.read(), key=lambda row: (row.task, row.policy, row.started, row.id))
        self.unreadable = listing.unreadable
        """Files that are no recordings, and why."""

    def where(self, **fields: object) -> list[Summary]:
        """Those with these values in their fields: `where(policy="wrong", outcome="failed")`.

        :raises AttributeError: a summary has no such field.
        """
        return [row for row in self if all(getattr(row, name) == value for name, value in fields.items())]

    def recording(self, row: Summary) -> Recording:
        """:raises RecordingError: it is damaged. :raises FileNotFoundError: it is gone."""
        return Recording.load(self.folder / row.file, partial=True)

    @overload
    def __getitem__(self, place: int) -> Summary: ...
    @overload
    def __getitem__(self, place: slice) -> list[Summary]: ...
    def __getitem__(self, place: int | slice) -> Summary | list[Summary]:
        return self._rows[place]

    def __iter__(self) -> Iterator[Summary]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        width = max((len(row.task) for row in self), default=0)
        lines = [
            f"{row.task:{width}}  {row.policy}: {row.outcome or 'not ended'}, "
            f"{row.tests_passed or 0}/{row.tests_total or 0} tests, {row.turns} turns"
            for row in self
        ]
        return "\n".join(lines) or "no episodes"

    def _repr_html_(self) -> str:
        policies = list(dict.fromkeys(row.policy for row in self))
        cells: dict[str, list[list[Summary]]] = {}
        for row in self:
            by_policy = cells.setdefault(row.task, [[] for _ in policies])
            by_policy[policies.index(row.policy)].append(row)
        return styled("run", policies=policies, tasks=cells)
