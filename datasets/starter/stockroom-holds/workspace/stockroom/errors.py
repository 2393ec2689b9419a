class Shortage(Exception):
    """Too little stock; `missing` maps sku to the number missing."""

    def __init__(self, missing: dict[str, int]):
        super().__init__(f"missing: {missing}")
        self.missing = missing


class HoldClosed(Exception):
    """The hold was released, fulfilled, or has expired."""
