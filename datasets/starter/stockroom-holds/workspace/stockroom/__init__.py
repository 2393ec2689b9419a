from .errors import HoldClosed, Shortage
from .holds import HoldBook
from .ledger import Ledger
from .report import summary

__all__ = ["HoldBook", "HoldClosed", "Ledger", "Shortage", "summary"]
