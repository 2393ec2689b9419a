from .bus import Bus, RelayError
from .registry import Subscription

__all__ = ["Bus", "RelayError", "Subscription"]
