import sys
from collections import Counter, defaultdict


def clean_ref(raw: str) -> str:
    return raw.upper().replace("-", "")


def parse_amount(raw: str) -> int:
    """The amount in pence."""
    negative = False
    if raw.startswith("("):
        negative, raw = True, raw[1:-1]
    elif raw.startswith("-"):
        negative, raw = True, raw[1:]
    whole, _, decimals = raw.replace(",", "").partition(".")
    pence = int(whole or "0") * 100 + int(decimals.ljust(2, "0"))
    return -pence if negative else pence


def show(pence: int, plus: bool = False) -> str:
    sign = "-" if pence < 0 else "+" if plus and pence > 0 else ""
    pounds, rest = divmod(abs(pence), 100)
    return f"{sign}{pounds}.{rest:02d}"


def read_log(lines) -> list[tuple[str, int]]:
    count = int(next(lines).split()[1])
    entries = []
    for _ in range(count):
        ref, amount = next(lines).split()
        entries.append((clean_ref(ref), parse_amount(amount)))
    return entries


def without(amounts: list[int], used: Counter) -> list[int]:
    """The amounts left once the earliest `used` ones are taken away."""
    used = used.copy()
    left = []
    for amount in amounts:
        if used[amount] > 0:
            used[amount] -= 1
        else:
            left.append(amount)
    return left


def main() -> None:
    lines = iter([line for line in sys.stdin.read().splitlines() if line.strip()])
    till, bank = read_log(lines), read_log(lines)

    by_ref = defaultdict(lambda: ([], []))
    for side, entries in enumerate((till, bank)):
        for ref, amount in entries:
            by_ref[ref][side].append(amount)

    matched = 0
    for ref in sorted(by_ref):
        ours, theirs = by_ref[ref]
        common = Counter(ours) & Counter(theirs)
        matched += common.total()
        ours, theirs = without(ours, common), without(theirs, common)
        pairs = min(len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            print("DIFF", ref, show(a), show(b), show(b - a, plus=True))
        for amount in ours[pairs:]:
            print("TILL-ONLY", ref, show(amount))
        for amount in theirs[pairs:]:
            print("BANK-ONLY", ref, show(amount))

    print("MATCHED", matched)
    print("DELTA", show(sum(a for _, a in bank) - sum(a for _, a in till), plus=True))


if __name__ == "__main__":
    main()
