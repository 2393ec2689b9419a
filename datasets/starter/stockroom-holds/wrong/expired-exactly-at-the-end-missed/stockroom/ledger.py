"""What lies on the shelves."""

from .errors import Shortage


class Ledger:
    def __init__(self):
        self._on_hand: dict[str, int] = {}
        self.history: list[tuple[str, int]] = []

    def receive(self, sku: str, qty: int) -> None:
        if qty < 1:
            raise ValueError("qty must be at least 1")
        self._on_hand[sku] = self.on_hand(sku) + qty
        self.history.append((sku, qty))

    def ship(self, sku: str, qty: int) -> None:
        if qty < 1:
            raise ValueError("qty must be at least 1")
        have = self.on_hand(sku)
        if have < qty:
            raise Shortage({sku: qty - have})
        self._on_hand[sku] = have - qty
        self.history.append((sku, -qty))

    def on_hand(self, sku: str) -> int:
        return self._on_hand.get(sku, 0)

    def skus(self) -> list[str]:
        return sorted(self._on_hand)
