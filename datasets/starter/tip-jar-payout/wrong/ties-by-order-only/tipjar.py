"""Paying out the tip jar."""


def payout(total: int, shifts: list[tuple[str, int]], coin: int = 5) -> tuple[dict[str, int], int]:
    """Return what each person gets, and what stays in the jar (all in cents)."""
    if total < 0:
        raise ValueError("total must not be negative")
    if coin < 1:
        raise ValueError("coin must be at least 1")

    minutes: dict[str, int] = {}
    for name, worked in shifts:
        if worked < 0:
            raise ValueError(f"negative minutes for {name!r}")
        minutes[name] = minutes.get(name, 0) + worked

    worked_in_all = sum(minutes.values())
    if worked_in_all == 0:
        return dict.fromkeys(minutes, 0), total

    coins, left = divmod(total, coin)
    share: dict[str, int] = {}
    fraction: dict[str, int] = {}  # numerator over worked_in_all
    for name, worked in minutes.items():
        share[name], fraction[name] = divmod(coins * worked, worked_in_all)

    undistributed = coins - sum(share.values())
    # sorted() is stable, so the order of first appearance settles what is still equal.
    for name in sorted(minutes, key=lambda n: -fraction[n])[:undistributed]:
        share[name] += 1
    return {name: count * coin for name, count in share.items()}, left
