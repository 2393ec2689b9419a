def free(busy, start, end):
    """The slots between `start` and `end` that are not busy."""
    if start > end or any(a > b for a, b in busy):
        raise ValueError("a slot ends before it begins")
    found, at = [], start
    busy.sort()
    for a, b in busy:
        if a == b:
            continue
        if at < min(a, end):
            found.append((at, min(a, end)))
        at = max(at, b)
    if at < end:
        found.append((at, end))
    return found
