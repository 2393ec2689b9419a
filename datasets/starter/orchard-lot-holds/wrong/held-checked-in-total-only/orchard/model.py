"""Data types and errors."""

from dataclasses import dataclass, replace


class StockError(Exception):
    """The stock does not allow it."""


@dataclass
class Lot:
    id: str
    sku: str
    qty: int
    best_before: int


class HoldError(StockError):
    """There is no such active hold."""


@dataclass(frozen=True)
class Hold:
    id: str
    sku: str
    expires: int
    picks: tuple  # of (lot id, qty) pairs: what is still held

    @property
    def qty(self):
        return sum(qty for _, qty in self.picks)

    @property
    def number(self):
        return int(self.id[1:])

    def without(self, picks):
        """The hold after these picks were taken from it."""
        taken = dict(picks)
        rest = ((lot_id, qty - taken.get(lot_id, 0)) for lot_id, qty in self.picks)
        return replace(self, picks=tuple((lot_id, qty) for lot_id, qty in rest if qty))
