"""The rules that make up a price, as a table."""

from collections.abc import Callable
from dataclasses import dataclass

BASE = {"city": 390, "land": 650, "isle": 1190}


@dataclass(frozen=True)
class Job:
    zone: str
    grams: int
    volume: int
    value: int
    express: bool
    account: str | None


@dataclass(frozen=True)
class Rule:
    name: str
    applies: Callable[[Job], bool]
    price: Callable[[Job, int], int]


def _always(job):
    return True


def _is_gold(job):
    return bool(job.account) and job.account.startswith("G")


def _is_silver(job):
    return bool(job.account) and job.account.startswith("S")


def _base(job, cents):
    return cents + BASE[job.zone]


def _is_bulky(job):
    return job.volume > 60000 or job.volume > 0 and job.volume // 5 > job.grams


def _bulky(job, cents):
    extra = 0 if job.zone == "city" else (job.volume - 1) // 10000 * 20
    return cents + 250 + extra


def _heavy(job, cents):
    steps = (job.grams - 2000 + 499) // 500
    if job.grams > 20000:
        steps += 10
    return cents + steps * (70 if job.zone == "isle" else 45)


def _remote(job, cents):
    if job.express:
        return cents + 900
    return cents + (200 if job.grams <= 1000 else 350)


def _insurance(job, cents):
    fee = (job.value - 10000) // 200
    if _is_gold(job):
        fee //= 2
    return cents + max(fee, 100)


def _express(job, cents):
    return min(cents * 3 // 2, BASE[job.zone] + 5000)


def _discount(job, cents):
    if _is_gold(job):
        return cents - cents * 12 // 100
    if _is_silver(job) and not job.express:
        return cents - cents * 5 // 100
    return cents


def _minimum(job, cents):
    return max(cents, 500)


def _rounding(job, cents):
    return cents + -cents % 5


RULES = (
    Rule("base", _always, _base),
    Rule("bulky", _is_bulky, _bulky),
    Rule("heavy", lambda job: job.grams > 2000, _heavy),
    Rule("remote", lambda job: job.zone == "isle", _remote),
    Rule("insurance", lambda job: job.value > 10000, _insurance),
    Rule("express", lambda job: job.express and job.zone != "isle", _express),
    Rule("discount", lambda job: bool(job.account), _discount),
    Rule("minimum", lambda job: not _is_gold(job), _minimum),
    Rule("rounding", _always, _rounding),
)
