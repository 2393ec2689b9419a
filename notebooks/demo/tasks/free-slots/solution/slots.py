def free(busy, start, end):
    """The slots between `start` and `end` that are not busy."""
    if start > end or any(a > b for a, b in busy):
        raise ValueError("a slot ends before it begins")
    found, at = [], start
    for a, b in sorted(slot for slot in busy if slot[0] < slot[1]):
        if at < min(a, end):
            found.append((at, min(a, end)))
        at = max(at, b)
    if at < end:
        found.append((at, end))
    return found
