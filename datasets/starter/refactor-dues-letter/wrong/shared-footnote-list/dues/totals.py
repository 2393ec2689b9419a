"""The sums of a letter."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Totals:
    charged: int
    paid: int
    rebate: int

    @property
    def balance(self):
        return self.charged - self.paid - self.rebate


def _sum(postings, *kinds):
    return sum(posting.cents for posting in postings if posting.kind in kinds)


def _rebate(member, fees):
    if not member.get("family") or fees <= 0:
        return 0
    rebate = (fees * 15 + 50) // 100
    if member["since"] < 2000:
        rebate += 500
    return min(rebate, fees)


def compute_totals(member, postings):
    return Totals(
        charged=_sum(postings, "fee", "fine"),
        paid=_sum(postings, "payment"),
        rebate=_rebate(member, _sum(postings, "fee")),
    )
