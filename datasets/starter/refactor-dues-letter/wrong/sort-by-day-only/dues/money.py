"""How amounts are written."""


def format_cents(cents):
    """-123456789 -> "-1'234'567.89" """
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    grouped = f"{whole:,}".replace(",", "'")
    return f"{sign}{grouped}.{rest:02d}"
