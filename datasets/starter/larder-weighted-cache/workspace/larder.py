class LarderFull(Exception):
    """The entry cannot be stored within the budget."""


class Larder:
    def __init__(self, budget, ttl, clock, on_drop=None):
        raise NotImplementedError
