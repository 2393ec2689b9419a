"""Source text to tokens."""

import re
from dataclasses import dataclass

from glyph.errors import ParseError

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>\d+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<string>'[^']*')
      | (?P<op>[-+*(),\[\]]|\|>)
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    pos: int


def tokenize(source):
    """Return the list of tokens, the last of which is of the kind "end"."""
    tokens = []
    at = 0
    while True:
        match = _TOKEN.match(source, at)
        if match is None:
            while source[at].isspace():
                at += 1
            raise ParseError(f"unexpected {source[at]!r}", at)
        kind = match.lastgroup
        tokens.append(Token(kind, match[kind], match.start(kind)))
        if kind == "end":
            return tokens
        at = match.end()
