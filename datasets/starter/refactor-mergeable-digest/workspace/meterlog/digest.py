def digest(lines):
    """Digest a meter log.

    A line is "METER VALUE"; "#" starts a comment line, and "= METER" is a reset mark: the meter was exchanged,
    so its next reading must not be compared with the one before.
    """
    state = {}
    order = []
    bad = []
    badcount = 0
    number = 0
    total = 0
    for line in lines:
        number += 1
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        words = text.split()
        if words[0] == "=":
            if len(words) != 2:
                badcount += 1
                if len(bad) < 5:
                    bad.append((number, "mark"))
                continue
            name = words[1].upper()
            if name in state:
                state[name]["prev"] = None
                state[name]["run"] = 0
            continue
        if len(words) != 2:
            badcount += 1
            if len(bad) < 5:
                bad.append((number, "shape"))
            continue
        name = words[0].upper()
        try:
            value = int(words[1])
        except ValueError:
            badcount += 1
            if len(bad) < 5:
                bad.append((number, "value"))
            continue
        total += 1
        if name not in state:
            state[name] = {"n": 0, "prev": None, "used": 0, "run": 0, "best": 0, "drops": 0, "low": value, "lowat": number}
            order.append(name)
        s = state[name]
        s["n"] += 1
        if s["prev"] is None:
            s["run"] = 1
        elif value > s["prev"]:
            s["used"] += value - s["prev"]
            s["run"] += 1
        elif value == s["prev"]:
            pass
        else:
            s["drops"] += 1
            s["run"] = 1
        if s["run"] > s["best"]:
            s["best"] = s["run"]
        if value < s["low"]:
            s["low"] = value
            s["lowat"] = number
        s["prev"] = value
    out = ["%d lines, %d readings, %d meters" % (number, total, len(order))]
    for name in order:
        s = state[name]
        row = "%s n=%d used=%d rise=%d low=%d@%d" % (name, s["n"], s["used"], s["best"], s["low"], s["lowat"])
        if s["drops"]:
            row += " drops=%d" % s["drops"]
        if s["prev"] is None:
            row += " (reset)"
        out.append(row)
    for n, reason in bad:
        out.append("bad line %d: %s" % (n, reason))
    if badcount > len(bad):
        out.append("and %d more bad lines" % (badcount - len(bad)))
    return out
