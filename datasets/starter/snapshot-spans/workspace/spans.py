def spans(snapshots, end=None):
    """Return {key: [(start, stop, value), ...]} for a series of (tick, settings) snapshots."""
    raise NotImplementedError
