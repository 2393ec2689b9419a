"""Paying out the tip jar."""


def payout(total: int, shifts: list[tuple[str, int]], coin: int = 5) -> tuple[dict[str, int], int]:
    """Return what each person gets, and what stays in the jar (all in cents)."""
    raise NotImplementedError
