"""Quotes for parcels."""

from courier.rules import BASE, RULES, Job

ALIASES = {"town": "city", "country": "land", "island": "isle"}


def _zone(parcel):
    zone = parcel["zone"]
    if not isinstance(zone, str):
        raise TypeError("zone must be a string")
    zone = zone.strip().lower()
    zone = ALIASES.get(zone, zone)
    if zone not in BASE:
        raise ValueError("unknown zone: " + zone)
    return zone


def _volume(parcel):
    size = parcel.get("size")
    if not size:
        return 0
    if len(size) != 3:
        raise ValueError("size needs three sides")
    a, b, c = size
    if min(a, b, c) <= 0:
        raise ValueError("sides must be positive")
    return a * b * c


def _weight(parcel):
    grams = parcel["grams"]
    if grams <= 0:
        raise ValueError("weight must be positive")
    return grams


def make_job(parcel):
    """Check a parcel and return the Job for it."""
    zone, grams, volume = _zone(parcel), _weight(parcel), _volume(parcel)
    if grams > 30000:
        raise ValueError("too heavy")
    if volume > 200000:
        raise ValueError("too large")
    value = parcel.get("value") or 0
    if value < 0:
        raise ValueError("negative value")
    return Job(zone, grams, volume, value, bool(parcel.get("express")), parcel.get("account") or None)


def _steps(job, rules):
    cents = 0
    for rule in rules:
        if rule.applies(job):
            before, cents = cents, rule.price(job, cents)
            yield rule.name, cents - before


def price(job, rules=RULES):
    """Price of a job in cents."""
    return sum(change for _, change in _steps(job, rules))


def explain(parcel, rules=RULES):
    """Pairs (rule name, change in cents) for the rules that apply."""
    return list(_steps(make_job(parcel), rules))


def quote(parcel):
    """Price of a parcel in cents.

    parcel: {"zone": str, "grams": int, "size": (cm, cm, cm) (optional), "value": cents (optional),
             "express": bool (optional), "account": str (optional)}
    """
    parcel["zone"] = _zone(parcel)  # known to callers even if the rest is refused
    parcel["quoted"] = cents = price(make_job(parcel))
    return cents
