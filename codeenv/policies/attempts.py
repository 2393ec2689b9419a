"""Which of a script's attempts a conversation plays, known from the conversation alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from codeenv.policies.chat import Spoken
from codeenv.policies.message import PolicyError


class Attempts:
    """Conversations on one task play its attempts in turn, each as it is.

    Attempts that begin alike cannot be told apart before they part, and need not be: where several go on from what was
    said so far, each of them is given once, in order, to the conversations that come there. Of attempts that differ in
    their reasoning alone, which no conversation need carry, a conversation may get some of each.
    """

    def __init__(self) -> None:
        self._given: Counter[int] = Counter()

    def next(self, task: str, attempts: Sequence[Sequence[Spoken]], so_far: Sequence[Spoken]) -> int:
        """:raises PolicyError: what was said so far is none of the attempts."""
        count = len(so_far)
        alike = [n for n, one in enumerate(attempts) if [*one[:count]] == [*so_far[: len(one)]]]
        # Behind its last message a script submits: a longer conversation is of that one if of no other.
        going_on = [n for n in alike if len(attempts[n]) >= count] or alike
        if not going_on:
            raise PolicyError(f"task {task!r}: the conversation is none of the script's {len(attempts)} attempts")
        place = hash((task, tuple(so_far)))
        given, self._given[place] = self._given[place], self._given[place] + 1
        return going_on[given % len(going_on)]
