class ReentrantLoad(RuntimeError):
    """A load asked for the key that its own thread is loading."""


class Flight:
    def __init__(self, load, *, clock, ttl, error_ttl=0, remember=()):
        raise NotImplementedError

    def get(self, key):
        raise NotImplementedError

    def forget(self, key):
        raise NotImplementedError

    def waiters(self, key):
        raise NotImplementedError
