LAST = {}

BASE = {"city": 390, "land": 650, "isle": 1190}
ALIASES = {"town": "city", "country": "land", "island": "isle"}


def quote(parcel):
    """Price of a parcel in cents.

    parcel: {"zone": str, "grams": int, "size": (cm, cm, cm) (optional), "value": cents (optional),
             "express": bool (optional), "account": str (optional)}
    """
    LAST.clear()
    z = parcel["zone"]
    if not isinstance(z, str):
        raise TypeError("zone must be a string")
    z = z.strip().lower()
    if z in ALIASES:
        z = ALIASES[z]
    if z not in BASE:
        raise ValueError("unknown zone: " + z)
    parcel["zone"] = z
    g = parcel["grams"]
    if g <= 0:
        raise ValueError("weight must be positive")
    size = parcel.get("size")
    vol = 0
    if size:
        if len(size) != 3:
            raise ValueError("size needs three sides")
        a, b, c = size
        if min(a, b, c) <= 0:
            raise ValueError("sides must be positive")
        vol = a * b * c
    if g > 30000:
        raise ValueError("too heavy")
    if vol > 0 and vol > 200000:
        raise ValueError("too large")
    val = parcel.get("value") or 0
    if val < 0:
        raise ValueError("negative value")
    fast = bool(parcel.get("express"))
    acc = parcel.get("account") or None

    cents = BASE[z]
    LAST["base"] = cents
    if vol > 60000 or (vol > 0 and vol // 5 > g):
        if z == "city":
            cents += 250
        else:
            cents += 250 + (vol - 1) // 10000 * 20
        LAST["bulky"] = cents
    if g > 2000:
        steps = (g - 2000 + 499) // 500
        if g > 20000:
            steps += 10
        cents += steps * (45 if z != "isle" else 70)
        LAST["heavy"] = cents
    if z == "isle":
        if fast:
            cents += 900
        elif g <= 1000:
            cents += 200
        else:
            cents += 350
        LAST["remote"] = cents
    if val > 10000:
        fee = (val - 10000) // 200
        if acc and acc.startswith("G"):
            fee = fee // 2
        if fee < 100:
            fee = 100
        cents += fee
        LAST["insurance"] = cents
    if fast and z != "isle":
        cents = cents * 3 // 2
        if cents - LAST["base"] > 5000:
            cents = LAST["base"] + 5000
        LAST["express"] = cents
    if acc:
        if acc.startswith("G"):
            cents -= cents * 12 // 100
        elif acc.startswith("S") and not fast:
            cents -= cents * 5 // 100
        LAST["discount"] = cents
    if not (acc and acc.startswith("G")):
        if cents < 500:
            cents = 500
    if cents % 5:
        cents += 5 - cents % 5
    parcel["quoted"] = cents
    return cents
