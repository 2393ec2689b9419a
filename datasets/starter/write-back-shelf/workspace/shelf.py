class Shelf:
    """Write-back cache in front of a store with load(key) and apply(changes)."""

    def __init__(self, store, capacity, batch=3):
        raise NotImplementedError
