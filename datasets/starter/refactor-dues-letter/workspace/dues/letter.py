_notes = []
_out = []
_sums = {"charged": 0, "paid": 0}


def render_letter(member, postings):
    """Return the text of the dues letter.

    member: {"name": str, "since": int, "family": bool (optional), "lang": str (optional)}
    postings: iterable of strings "day;kind;cents[;note]"
    """
    global _out
    _notes.clear()
    _out = []
    _sums["charged"] = 0
    _sums["paid"] = 0
    name = member["name"].strip()
    _out.append("Dear " + (name if name else "member") + ",")
    _out.append("")
    rows = []
    fees = 0
    for raw in postings:
        parts = raw.split(";", 3)
        if len(parts) < 3:
            raise ValueError("bad posting: " + repr(raw))
        try:
            day = int(parts[0])
            cents = int(parts[2])
        except ValueError:
            raise ValueError("bad number in posting: " + repr(raw)) from None
        kind = parts[1].strip().lower()
        if kind == "pay":
            kind = "payment"
        if kind not in ("fee", "fine", "payment"):
            raise ValueError("unknown kind " + repr(parts[1]))
        if cents < 0 and kind != "payment":
            raise ValueError("negative amount: " + repr(raw))
        note = " ".join(parts[3].split()) if len(parts) > 3 else ""
        rows.append((day, kind, cents, note))
    rows2 = sorted(rows, key=lambda r: (r[0], r[1] == "payment"))
    last = None
    for day, kind, cents, note in rows2:
        mark = ""
        if note:
            if len(note) <= 12:
                mark = " (" + note + ")"
            else:
                if note not in _notes:
                    _notes.append(note)
                mark = " [" + str(_notes.index(note) + 1) + "]"
        amount = cents
        if kind == "payment":
            _sums["paid"] += cents
            amount = -cents
        else:
            _sums["charged"] += cents
            if kind == "fee":
                fees += cents
        sign = "-" if amount < 0 else ""
        a = abs(amount)
        txt = str(a // 100)
        grouped = ""
        while len(txt) > 3:
            grouped = "'" + txt[-3:] + grouped
            txt = txt[:-3]
        txt = sign + txt + grouped + "." + ("%02d" % (a % 100))
        if day == last:
            d = "   "
        else:
            d = "%3d" % day
        last = day
        _out.append((d + "  " + kind.ljust(8) + txt.rjust(12) + mark).rstrip())
    if not rows2:
        _out.append("  (no postings)")
    rebate = 0
    if member.get("family") and fees > 0:
        rebate = (fees * 15 + 50) // 100
        if member["since"] < 2000:
            rebate += 500
        if rebate > fees:
            rebate = fees
    balance = _sums["charged"] - _sums["paid"] - rebate
    _out.append("-" * 25)
    for label, amount in (("charged", _sums["charged"]), ("paid", -_sums["paid"]), ("rebate", -rebate)):
        if label == "rebate" and not rebate:
            continue
        sign = "-" if amount < 0 else ""
        a = abs(amount)
        txt = str(a // 100)
        grouped = ""
        while len(txt) > 3:
            grouped = "'" + txt[-3:] + grouped
            txt = txt[:-3]
        txt = sign + txt + grouped + "." + ("%02d" % (a % 100))
        _out.append("     " + label.ljust(8) + txt.rjust(12))
    _out.append("")
    sign = "-" if balance < 0 else ""
    a = abs(balance)
    txt = str(a // 100)
    grouped = ""
    while len(txt) > 3:
        grouped = "'" + txt[-3:] + grouped
        txt = txt[:-3]
    txt = txt + grouped + "." + ("%02d" % (a % 100))
    if balance > 0:
        _out.append("Please pay " + txt + " by the end of the month.")
        if balance > _sums["charged"]:
            _out.append("This includes an earlier refund.")
    elif balance == 0:
        _out.append("Your account is even.")
    else:
        _out.append("You have " + txt + " to your credit.")
    if _notes:
        _out.append("")
        n = 0
        for note in _notes:
            n += 1
            _out.append("[" + str(n) + "] " + note)
    return "\n".join(_out) + "\n"
