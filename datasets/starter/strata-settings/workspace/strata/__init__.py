from .lookup import MissingError
from .merge import REMOVE
from .refs import CycleError
from .store import Settings

__all__ = ["REMOVE", "CycleError", "MissingError", "Settings"]
