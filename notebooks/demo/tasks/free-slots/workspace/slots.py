def free(busy, start, end):
    """The slots between `start` and `end` that are not busy."""
    raise NotImplementedError
