"""The stock itself."""

from collections import Counter

from orchard.journal import decode, encode
from orchard.model import Hold, HoldError, Lot, StockError


def _check_qty(qty):
    if type(qty) is not int or qty <= 0:
        raise ValueError("a quantity must be a positive int")


def _take(available, qty):
    """Take qty from (lot id, qty) pairs, in order; None if there is not enough."""
    picks = []
    for lot_id, present in available:
        take = min(present, qty)
        if take:
            picks.append((lot_id, take))
            qty -= take
    return None if qty else picks


class Stock:
    def __init__(self, clock):
        self.clock = clock
        self.journal = []
        self._lots = {}  # by id, also empty ones
        self._holds = {}  # by id; may contain expired ones
        self._last_hold = 0

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
        picks = self._pick(sku, qty, self.clock())
        self._record({"type": "ship", "sku": sku, "picks": picks})
        return picks

    def hold(self, sku, qty, ttl):
        """Set units aside for a time; return the id of the hold."""
        _check_qty(qty)
        if type(ttl) is not int or ttl <= 0:
            raise ValueError("a ttl must be a positive int")
        now = self.clock()
        picks = self._pick(sku, qty, now)
        hold_id = f"H{self._last_hold + 1}"
        self._record({"type": "hold", "id": hold_id, "sku": sku, "expires": now + ttl, "picks": picks})
        return hold_id

    def release(self, hold_id):
        """End an active hold."""
        self._active(hold_id)
        self._record({"type": "release", "id": hold_id})

    def fulfil(self, hold_id, qty=None):
        """Ship units of an active hold (default: all); return the picks."""
        if qty is not None:
            _check_qty(qty)
        hold = self._active(hold_id)
        picks = _take(hold.picks, hold.qty if qty is None else qty)
        if picks is None:
            raise StockError(f"{hold_id} holds only {hold.qty}")
        self._record({"type": "fulfil", "id": hold_id, "picks": picks})
        return picks

    def holds(self):
        """Active holds by expiry, then by number."""
        now = self.clock()
        active = [hold for hold in self._holds.values() if now < hold.expires]
        return sorted(active, key=lambda hold: (hold.expires, hold.number))

    def free(self, sku):
        return self.on_hand(sku) - sum(hold.qty for hold in self.holds() if hold.sku == sku)

    def on_hand(self, sku):
        return sum(lot.qty for lot in self._lots.values() if lot.sku == sku)

    def skus(self):
        """Sorted names of what is on hand."""
        return sorted({lot.sku for lot in self._lots.values() if lot.qty})

    def _active(self, hold_id):
        hold = self._holds.get(hold_id)
        if hold is None or self.clock() >= hold.expires:
            raise HoldError(f"no active hold {hold_id}")
        return hold

    def _pick(self, sku, qty, now):
        held = Counter()
        for hold in self._holds.values():
            if now < hold.expires:
                held.update(dict(hold.picks))
        lots = [lot for lot in self._lots.values() if lot.sku == sku]
        lots.sort(key=lambda lot: (lot.best_before, lot.id))
        free = sum(lot.qty - held[lot.id] for lot in lots)
        picks = _take([(lot.id, lot.qty) for lot in lots], qty) if qty <= free else None
        if picks is None:
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

    def _apply_hold(self, event):
        picks = tuple((lot_id, qty) for lot_id, qty in event["picks"])
        hold = Hold(event["id"], event["sku"], event["expires"], picks)
        self._holds[hold.id] = hold
        self._last_hold = hold.number

    def _apply_release(self, event):
        del self._holds[event["id"]]

    def _apply_fulfil(self, event):
        hold = self._holds.pop(event["id"]).without(event["picks"])
        if hold.picks:
            self._holds[hold.id] = hold
        self._apply_ship(event)
