from copy import deepcopy


def _same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        if len(a) != len(b):
            return False
        others = {(type(key), key): value for key, value in b.items()}
        return all((type(key), key) in others and _same(value, others[type(key), key]) for key, value in a.items())
    return a == b


def spans(snapshots, end=None):
    """Return {key: [(start, stop, value), ...]} for a series of (tick, settings) snapshots."""
    by_tick = {}
    for tick, settings in snapshots:
        if end is None or tick < end:
            by_tick[tick] = deepcopy(settings)

    result = {}
    running = {}  # key -> (start, value)

    def close(key, stop):
        start, value = running.pop(key)
        result[key].append((start, stop, value))

    for tick, settings in sorted(by_tick.items(), key=lambda item: item[0]):
        for key in list(running):
            if key not in settings or not _same(running[key][1], settings[key]):
                close(key, tick)
        for key, value in settings.items():
            if key not in running:
                result.setdefault(key, [])
                running[key] = (tick, value)
    for key in list(running):
        close(key, end)
    return result
