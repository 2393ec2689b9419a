"""Searching the catalogue."""

import operator
import re
from typing import NamedTuple

KEYWORDS = {"and", "or", "not", "in", "without"}
COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "~": lambda have, wanted: wanted.casefold() in have.casefold(),
}

_BLANKS = re.compile(r"[ \t\n]*")
_TOKEN = re.compile(
    r"""(?P<word>[A-Za-z_][A-Za-z0-9_-]*)
      | (?P<number>-?[0-9]+(?:\.[0-9]+)?)
      | (?P<sign>\.\.|!=|<=|>=|[=<>~(),])""",
    re.VERBOSE,
)
_AFTER_NUMBER = re.compile(r"[A-Za-z_-]")


class QueryError(ValueError):
    """A query that cannot be understood; `pos` is where."""

    def __init__(self, message: str, pos: int):
        super().__init__(f"{message} at {pos}")
        self.pos = pos


class Token(NamedTuple):
    kind: str  # "word", "string", "number", "end", "bad", or the sign or keyword itself
    value: object
    pos: int


def _string(text: str, start: int) -> tuple[str, int]:
    """The content of the string that starts here, and the index after it."""
    out, at = [], start + 1
    while at < len(text):
        char = text[at]
        if char == '"':
            return "".join(out), at + 1
        if char == "\\":
            if at + 1 == len(text):
                break
            if text[at + 1] not in '"\\':
                raise QueryError("unknown escape", at)
            at += 1
        out.append(text[at])
        at += 1
    raise QueryError("string does not end", start)


def _tokens(text: str) -> list[Token]:
    """All tokens up to the end, or up to the first bad one, which carries its error as value."""
    tokens: list[Token] = []
    at = 0
    try:
        while True:
            at = _BLANKS.match(text, at).end()
            if at == len(text):
                tokens.append(Token("end", None, at))
                return tokens
            start = at
            if text[at] == '"':
                value, at = _string(text, at)
                tokens.append(Token("string", value, start))
                continue
            match = _TOKEN.match(text, at)
            if not match:
                raise QueryError("unexpected character", at)
            at, word = match.end(), match.group()
            kind = match.lastgroup
            if kind == "sign":
                kind = word
            elif kind == "word" and word.lower() in KEYWORDS:
                kind = word.lower()
            tokens.append(Token(kind, word, start))
            if kind == "number" and _AFTER_NUMBER.match(text, at):
                raise QueryError("a number runs into something", at)
    except QueryError as error:
        tokens.append(Token("bad", error, error.pos))
        return tokens


def _number(spelt: str) -> int | float:
    return float(spelt) if "." in spelt else int(spelt)


class Parser:
    def __init__(self, text: str):
        self.tokens = _tokens(text)
        self.at = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.next
        self.at += 1
        return token

    def skip(self, kind: str) -> bool:
        if self.next.kind != kind:
            return False
        self.at += 1
        return True

    def fail(self, wanted: str):
        if self.next.kind == "bad":
            raise self.next.value
        raise QueryError(f"{wanted} expected", self.next.pos)

    def query(self):
        tree = self.alternatives()
        if self.next.kind != "end":
            self.fail("end of the query")
        return tree

    def alternatives(self):
        parts = [self.exclusions()]
        while self.skip("or"):
            parts.append(self.exclusions())
        return ("or", parts) if len(parts) > 1 else parts[0]

    def exclusions(self):
        tree = self.conjunction()
        while self.skip("without"):
            tree = ("without", tree, self.conjunction())
        return tree

    def conjunction(self):
        parts = [self.negation()]
        while self.skip("and") or self.next.kind in ("not", "(", "word", "string", "number"):
            parts.append(self.negation())
        flat = [sub for part in parts for sub in (part[1] if part[0] == "and" else [part])]
        return ("and", flat) if len(flat) > 1 else flat[0]

    def negation(self):
        if self.skip("not"):
            return ("not", self.negation())
        return self.operand()

    def operand(self):
        token = self.next
        if self.skip("("):
            tree = self.alternatives()
            if self.next.kind == "end":
                raise QueryError("parenthesis is never closed", token.pos)
            if not self.skip(")"):
                self.fail(")")
            return tree
        if token.kind not in ("word", "string", "number"):
            self.fail("a condition")
        self.take()
        if token.kind == "word":
            if self.next.kind in COMPARE:
                sign = self.take().kind
                return ("cmp", token.value, sign, self.value(numbers=sign != "~"))
            if self.skip("in"):
                return ("in", token.value, self.items())
        return ("text", token.value)

    def value(self, numbers: bool = True):
        token = self.next
        if token.kind in ("word", "string"):
            return self.take().value
        if token.kind == "number" and numbers:
            return _number(self.take().value)
        self.fail("a value")

    def items(self) -> list:
        if not self.skip("("):
            self.fail("(")
        items = [self.item()]
        while self.skip(","):
            items.append(self.item())
        if not self.skip(")"):
            self.fail(", or )")
        return items

    def item(self):
        low = self.value()
        if isinstance(low, str) or not self.skip(".."):
            return low
        token = self.next
        if token.kind != "number":
            self.fail("a number")
        high = self.value()
        if low > high:
            raise QueryError("the range is upside down", token.pos)
        return ("range", low, high)


def parse(text: str):
    """The tree of a query."""
    return Parser(text).query()


def _values(record: dict, field: str) -> list | None:
    value = record.get(field)
    return value if value is None or isinstance(value, list) else [value]


def _same_type(one: object, other: object) -> bool:
    return isinstance(one, str) == isinstance(other, str)


def _passes(have: object, sign: str, wanted: object) -> bool:
    if not _same_type(have, wanted):
        return sign == "!="
    return COMPARE[sign](have, wanted)


def _in_item(have: object, item: object) -> bool:
    if isinstance(item, tuple):
        return not isinstance(have, str) and item[1] <= have <= item[2]
    return have == item


def _matches(tree: tuple, record: dict) -> bool:
    match tree:
        case ("or", parts):
            return any(_matches(part, record) for part in parts)
        case ("and", parts):
            return all(_matches(part, record) for part in parts)
        case ("without", kept, dropped):
            return _matches(kept, record) and not _matches(dropped, record)
        case ("not", part):
            return not _matches(part, record)
        case ("cmp", field, sign, wanted):
            values = _values(record, field)
            if values is None:
                return False
            quantifier = all if sign == "!=" else any
            return quantifier(_passes(have, sign, wanted) for have in values)
        case ("in", field, items):
            return any(_in_item(have, item) for have in _values(record, field) or [] for item in items)
        case ("text", wanted):
            strings = (v for field in record for v in _values(record, field) or [] if isinstance(v, str))
            return any(COMPARE["~"](have, wanted) for have in strings)
    raise AssertionError(tree)


def search(text: str, records: list[dict]) -> list[dict]:
    """The records that match the query."""
    tree = parse(text)
    return [record for record in records if _matches(tree, record)]
