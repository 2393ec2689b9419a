"""Data types and errors."""

from dataclasses import dataclass


class StockError(Exception):
    """The stock does not allow it."""


@dataclass
class Lot:
    id: str
    sku: str
    qty: int
    best_before: int
