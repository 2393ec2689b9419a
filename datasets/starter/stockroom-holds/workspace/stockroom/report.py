"""A table of all goods."""

from .holds import HoldBook


def summary(book: HoldBook, now: float) -> dict[str, dict[str, int]]:
    return {
        sku: {
            "on_hand": book.ledger.on_hand(sku),
            "held": book.held(sku, now),
            "available": book.available(sku, now),
        }
        for sku in book.ledger.skus()
    }
