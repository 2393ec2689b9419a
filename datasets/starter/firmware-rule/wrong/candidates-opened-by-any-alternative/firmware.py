"""Which firmware may be installed."""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

_NUMBER = r"(0|[1-9][0-9]*)"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:(-rc|\+fix)([1-9][0-9]*))?")
_WILDCARD = re.compile(rf"(!= *)?(?:{_NUMBER}\.)?(?:{_NUMBER}\.)?\*")
_TERM = re.compile(r"(=|!=|<=|<|>=|>|~|\^|) *([^ ].*)")
_STAGE = {"-rc": -1, None: 0, "+fix": 1}
_COMPARE = {
    "": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Version(NamedTuple):
    """Compares in release order."""

    numbers: tuple[int, int, int]
    stage: int
    nth: int


@dataclass
class Term:
    accepts: Callable[[Version], bool]
    opens_candidates_of: tuple[int, int, int] | None = None


def _version(text: str) -> Version:
    match = _VERSION.fullmatch(text)
    if not match:
        raise ValueError(f"not a version: {text!r}")
    a, b, c, suffix, nth = match.groups()
    return Version((int(a), int(b), int(c)), _STAGE[suffix], int(nth or 0))


def _wildcard(negated: bool, prefix: tuple[int, ...]) -> Term:
    return Term(lambda v: (v.numbers[: len(prefix)] == prefix) != negated)


def _term(text: str) -> Term:
    if match := _WILDCARD.fullmatch(text):
        negation, *numbers = match.groups()
        prefix = tuple(int(n) for n in numbers if n is not None)
        if negation and not prefix:
            raise ValueError(f"not a term: {text!r}")
        return _wildcard(negation is not None, prefix)

    match = _TERM.fullmatch(text)
    if not match:
        raise ValueError(f"not a term: {text!r}")
    sign, wanted = match[1], _version(match[2])
    if sign in _COMPARE:
        compare = _COMPARE[sign]
        term = Term(lambda v: compare(v, wanted))
    else:
        same = 2 if sign == "~" else 1
        term = Term(lambda v: v >= wanted and v.numbers[:same] == wanted.numbers[:same])
    if sign != "!=" and wanted.stage < 0:
        term.opens_candidates_of = wanted.numbers
    return term


def _rule(text: str) -> list[list[Term]]:
    return [[_term(term.strip(" ")) for term in alternative.split(",")] for alternative in text.split("|")]


def _alternative_accepts(terms: list[Term], version: Version) -> bool:
    return all(term.accepts(version) for term in terms)


def _rule_accepts(rule: list[list[Term]], version: Version) -> bool:
    opened = {term.opens_candidates_of for terms in rule for term in terms}
    if version.stage < 0 and version.numbers not in opened:
        return False
    return any(_alternative_accepts(terms, version) for terms in rule)


def matches(rule: str, version: str) -> bool:
    parsed, candidate = _rule(rule), _version(version)
    return _rule_accepts(parsed, candidate)


def best(rule: str, versions: Iterable[str]) -> str | None:
    parsed = _rule(rule)
    candidates = [(_version(text), text) for text in versions]
    return max((pair for pair in candidates if _rule_accepts(parsed, pair[0])), default=(None, None))[1]
