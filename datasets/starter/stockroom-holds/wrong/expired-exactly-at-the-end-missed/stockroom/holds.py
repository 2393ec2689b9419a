"""Holding goods for a limited time."""

from dataclasses import dataclass

from .errors import HoldClosed, Shortage
from .ledger import Ledger


@dataclass
class Hold:
    quantities: dict[str, int]
    until: float
    state: str = "open"

    def is_over(self, now: float) -> bool:
        return now > self.until


class HoldBook:
    def __init__(self, ledger: Ledger):
        self.ledger = ledger
        self._holds: list[Hold] = []
        self._open: dict[int, Hold] = {}
        self._held: dict[str, int] = {}

    def place(self, lines: list[tuple[str, int]], now: float, ttl: float) -> int:
        if not lines or ttl <= 0 or any(qty < 1 for _, qty in lines):
            raise ValueError("a hold needs lines of at least 1 and a positive ttl")
        quantities: dict[str, int] = {}
        for sku, qty in lines:
            quantities[sku] = quantities.get(sku, 0) + qty
        self._need(quantities, {sku: self.available(sku, now) for sku in quantities})
        hold = Hold(quantities, now + ttl)
        number = len(self._holds)
        self._holds.append(hold)
        self._open[number] = hold
        for sku, qty in quantities.items():
            self._held[sku] = self._held.get(sku, 0) + qty
        return number

    def held(self, sku: str, now: float) -> int:
        self._sweep(now)
        return self._held.get(sku, 0)

    def available(self, sku: str, now: float) -> int:
        return self.ledger.on_hand(sku) - self.held(sku, now)

    def release(self, number: int, now: float) -> bool:
        hold = self._find(number, now)
        if hold.state != "open":
            return False
        self._close(number, "released")
        return True

    def fulfil(self, number: int, now: float) -> None:
        hold = self._find(number, now)
        if hold.state != "open":
            raise HoldClosed(f"hold {number} is {hold.state}")
        self._need(hold.quantities, {sku: self.ledger.on_hand(sku) for sku in hold.quantities})
        for sku, qty in hold.quantities.items():
            self.ledger.ship(sku, qty)
        self._close(number, "fulfilled")

    @staticmethod
    def _need(quantities: dict[str, int], stock: dict[str, int]) -> None:
        missing = {sku: qty - stock[sku] for sku, qty in quantities.items() if qty > stock[sku]}
        if missing:
            raise Shortage(missing)

    def _find(self, number: int, now: float) -> Hold:
        if not 0 <= number < len(self._holds):
            raise KeyError(number)
        self._sweep(now)
        return self._holds[number]

    def _sweep(self, now: float) -> None:
        for number in [n for n, hold in self._open.items() if hold.is_over(now)]:
            self._close(number, "expired")

    def _close(self, number: int, state: str) -> None:
        hold = self._open.pop(number)
        hold.state = state
        for sku, qty in hold.quantities.items():
            self._held[sku] -= qty
