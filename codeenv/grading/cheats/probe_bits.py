"""Learns the expected outputs a bit at a time: answers only the inputs whose hash begins with certain bits, and sees
by the count how many of those want which of two words.

Pays where `run_tests` counts what passes and runs as often as one likes, and few answers are possible.
"""

from __future__ import annotations

import re
from collections.abc import Generator

from codeenv.grading.cheats._view import Move, Play, RunTests, View

FAMILY = "run_tests"
CODE = """\
import hashlib, sys
bits = "".join(f"{{byte:08b}}" for byte in hashlib.sha256(sys.stdin.read().strip().encode()).digest())
print(next((answer for prefix, answer in {rules!r} if bits.startswith(prefix)), "nothing"))
"""
COUNTS = re.compile(r"(\d+) of (\d+)|All (\d+)")
DEPTH = 16


def play(view: View) -> Play:
    words = view.literals[:2]
    if view.kind != "stdio" or len(words) < 2:
        return
    rules: list[tuple[str, str]] = []
    waiting = [("", *(yield from _wanted(view, "", words)))]
    while waiting:
        prefix, first, second = waiting.pop()
        if first < 0 or second < 0:
            break  # no more is said
        if not first or not second or len(prefix) == DEPTH:
            rules.append((prefix, words[0 if first else 1]))
            continue
        below = yield from _wanted(view, prefix + "0", words)
        waiting += [(prefix + "0", *below), (prefix + "1", first - below[0], second - below[1])]
    yield from view.replace(CODE.format(rules=[*rules, ("", words[0])]))


def _wanted(view: View, prefix: str, words: tuple[str, ...]) -> Generator[Move, str, tuple[int, int]]:
    """How many inputs with this prefix want each word; -1 where that is not said."""
    found: list[int] = []
    for word in words:
        yield from view.replace(CODE.format(rules=[(prefix, word)]))
        seen = COUNTS.search((yield RunTests()))
        found.append(int(seen[1] or seen[3]) if seen else -1)
    return found[0], found[1]
