"""The stock itself."""

from orchard.journal import decode, encode
from orchard.model import Lot, StockError


def _check_qty(qty):
    if type(qty) is not int or qty <= 0:
        raise ValueError("a quantity must be a positive int")


class Stock:
    def __init__(self, clock):
        self.clock = clock
        self.journal = []
        self._lots = {}  # by id, also empty ones

    @classmethod
    def replay(cls, lines, clock):
        """Stock with the state that the journal lines lead to."""
        stock = cls(clock)
        for line in lines:
            stock._apply(decode(line))
            stock.journal.append(line)
        return stock

    def receive(self, lot_id, sku, qty, best_before):
        """Take in a new lot."""
        _check_qty(qty)
        if lot_id in self._lots:
            raise StockError(f"lot {lot_id} exists")
        self._record({"type": "receive", "lot": lot_id, "sku": sku, "qty": qty, "best_before": best_before})

    def ship(self, sku, qty):
        """Take units out, from the lots with the earliest best-before day first (equal days: by lot id).

        Returns the picks, a list of (lot id, qty) pairs. Lots past their day are shipped like any other.
        """
        _check_qty(qty)
        picks = self._pick(sku, qty)
        self._record({"type": "ship", "sku": sku, "picks": picks})
        return picks

    def on_hand(self, sku):
        return sum(lot.qty for lot in self._lots.values() if lot.sku == sku)

    def skus(self):
        """Sorted names of what is on hand."""
        return sorted({lot.sku for lot in self._lots.values() if lot.qty})

    def _pick(self, sku, qty):
        picks = []
        lots = [lot for lot in self._lots.values() if lot.sku == sku]
        for lot in sorted(lots, key=lambda lot: (lot.best_before, lot.id)):
            take = min(lot.qty, qty)
            if take:
                picks.append((lot.id, take))
                qty -= take
        if qty:
            raise StockError(f"not enough {sku}")
        return picks

    def _record(self, event):
        line = encode(event)
        self._apply(event)
        self.journal.append(line)

    def _apply(self, event):
        getattr(self, "_apply_" + event["type"])(event)

    def _apply_receive(self, event):
        self._lots[event["lot"]] = Lot(event["lot"], event["sku"], event["qty"], event["best_before"])

    def _apply_ship(self, event):
        for lot_id, qty in event["picks"]:
            self._lots[lot_id].qty -= qty
