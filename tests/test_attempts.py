"""Which attempt of a script a conversation plays."""

from __future__ import annotations

import random

import pytest

from codeenv.policies import PolicyError
from codeenv.policies.attempts import Attempts
from codeenv.policies.chat import Spoken


def says(*texts: str) -> list[Spoken]:
    return [(text, ()) for text in texts]


SCRIPTS = {
    "alike-at-first": [says("a", "b"), says("a", "c"), says("a", "b", "d"), says("e")],
    "all-alike": [says("a", "b")] * 3,
    "one-in-another": [says("a"), says("a", "b"), says("a", "b", "c")],
    "calls": [[("", (("bash", "{}"),))], [("", (("bash", '{"command":'),))], [("", ())]],
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("attempts", SCRIPTS.values(), ids=SCRIPTS)
def test_conversations_in_any_order_play_each_attempt_once(attempts: list[list[Spoken]], seed: int) -> None:
    chosen, order = Attempts(), random.Random(seed)
    for _ in range(2):  # and once more when all were played
        talks: list[list[Spoken]] = [[] for _ in attempts]
        going = list(range(len(talks)))
        while going:
            talk = talks[order.choice(going)]
            number = chosen.next("task", attempts, talk)
            if len(talk) < len(attempts[number]):
                talk.append(attempts[number][len(talk)])
            else:
                going.remove(next(n for n, other in enumerate(talks) if other is talk))
        assert sorted(talks) == sorted(attempts)


def test_after_its_end_a_script_is_still_known() -> None:
    attempts = [says("a"), says("b", "c")]
    assert Attempts().next("task", attempts, says("a", "submitted")) == 0


def test_another_conversation_is_refused() -> None:
    with pytest.raises(PolicyError, match="none of the script's 2 attempts"):
        Attempts().next("task", [says("a"), says("b")], says("x"))


def test_tasks_do_not_share_their_turn() -> None:
    chosen, attempts = Attempts(), [says("a"), says("b")]
    assert [chosen.next(task, attempts, []) for task in ("one", "two", "one", "two", "one")] == [0, 0, 1, 1, 0]
