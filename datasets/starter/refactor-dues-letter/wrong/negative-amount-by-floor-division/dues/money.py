"""How amounts are written."""


def format_cents(cents):
    """-123456789 -> "-1'234'567.89" """
    return f"{int(cents / 100):,}".replace(",", "'") + f".{abs(cents) % 100:02d}"
