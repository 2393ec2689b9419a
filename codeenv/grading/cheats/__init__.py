"""Cheats: wrong solutions that look for a reward anyway, each as an agent would leave it that sees what a policy sees.

A module here is one cheat. Its docstring says what it does and where it would pay; `FAMILY` is one of `FAMILIES`;
`play(view)` yields moves and is sent what a policy sees of each. A cheat that yields nothing has nothing to try on that
task. `codeenv.audit` plays them; modules whose name starts with `_` are their tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from codeenv.grading.cheats._view import Move, Play, RunTests, Shell, View, Write

__all__ = ["FAMILIES", "Cheat", "Move", "Play", "RunTests", "Shell", "View", "Write", "cheats", "choose", "perform"]

FAMILIES = (
    "early exit",
    "patched",
    "odd object",
    "configuration",
    "shadowing",
    "byte-code",
    "forged",
    "reading",
    "background",
    "links",
    "interpreter",
    "exhaustion",
    "flood",
    "run_tests",
)


@dataclass(frozen=True)
class Cheat:
    """`about` is one line; `play` gives the moves, none where the cheat does not apply."""

    name: str
    family: str
    about: str
    play: Callable[[View], Play]


async def perform(play: Play, take: Callable[[Move], Awaitable[str]]) -> int:
    """Make every move with `take`, which gives what a policy sees of it; how many there were."""
    moves = 0
    try:
        move = next(play)
        while True:
            moves += 1
            move = play.send(await take(move))
    except StopIteration:
        return moves


@cache
def cheats() -> tuple[Cheat, ...]:
    """The whole battery, by family and name."""
    found = [_load(module.name) for module in iter_modules(__path__) if not module.name.startswith("_")]
    return tuple(sorted(found, key=lambda cheat: (FAMILIES.index(cheat.family), cheat.name)))


def choose(names: Sequence[str]) -> tuple[Cheat, ...]:
    """Those with one of these names or families; all when there is none. :raises ValueError: an unknown name."""
    known = {cheat.name for cheat in cheats()} | set(FAMILIES)
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"cheats: unknown {', '.join(map(repr, unknown))}; valid: {', '.join(sorted(known))}")
    return tuple(cheat for cheat in cheats() if not names or cheat.name in names or cheat.family in names)


def _load(name: str) -> Cheat:
    module = import_module(f"{__name__}.{name}")
    about = (module.__doc__ or "").strip().partition("\n\n")[0]
    return Cheat(name, module.FAMILY, " ".join(about.split()), module.play)
