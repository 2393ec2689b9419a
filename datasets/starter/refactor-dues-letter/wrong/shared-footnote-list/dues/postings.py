"""Raw postings and their parsed form."""

from dataclasses import dataclass

KINDS = ("fee", "fine", "payment")


@dataclass(frozen=True)
class Posting:
    day: int
    kind: str
    cents: int
    note: str


def parse_posting(raw):
    parts = raw.split(";", 3)
    if len(parts) < 3:
        raise ValueError(f"bad posting: {raw!r}")
    try:
        day, cents = int(parts[0]), int(parts[2])
    except ValueError:
        raise ValueError(f"bad number in posting: {raw!r}") from None
    kind = parts[1].strip().lower()
    if kind == "pay":
        kind = "payment"
    if kind not in KINDS:
        raise ValueError(f"unknown kind {parts[1]!r}")
    if cents < 0 and kind != "payment":
        raise ValueError(f"negative amount: {raw!r}")
    note = " ".join(parts[3].split()) if len(parts) > 3 else ""
    return Posting(day, kind, cents, note)
