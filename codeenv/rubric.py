"""Reward and metrics, read off what the cleanup handler left in the state. No reward function runs anything: an error
raised in one would become reward 0."""

# verifiers carries no types (its names are resolved at run time): what comes from it is Any here, and only here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import verifiers as vf

from codeenv import scores


async def hidden_tests(state: vf.State) -> float:
    """1.0 when the hidden tests' exit code was 0, with evidence of each of them; else 0.0."""
    return scores.hidden_tests(state)


async def tests_passed_fraction(state: vf.State) -> float:
    return scores.tests_passed_fraction(state)


async def num_turns(state: vf.State) -> float:
    """Messages of the policy, by the name that every multi-turn environment of verifiers has."""
    return float(len(state["trajectory"]))


class CodeRubric(vf.Rubric):
    """`hidden_tests` has weight 1, `tests_passed_fraction` weight `partial_credit`; everything else is a metric.

    In a group, rollouts without a reward (outcomes `infra` and `model`) neither count for the mean nor get an
    advantage.

    :param play: makes a rollout of a state's completion where there was none; raises what keeps it from a reward.
    """

    def __init__(self, partial_credit: float, play: Callable[[vf.State], Awaitable[None]]) -> None:
        super().__init__(funcs=[hidden_tests, tests_passed_fraction], weights=[1.0, partial_credit])
        self._play = play
        self.add_metric(num_turns)
        for name, read in scores.METRICS.items():
            self.add_metric(_metric(name, read))

    async def score_rollout(self, state: vf.State) -> None:
        if "outcome" not in state:
            await self._play(state)
        await super().score_rollout(state)

    async def score_group(self, states: list[vf.State]) -> None:
        await super().score_group(states)
        counted = [state for state in states if state.get("outcome") not in ("infra", "model")]
        mean = sum(state["reward"] for state in counted) / len(counted) if counted else 0.0
        for state in states:
            state["advantage"] = state["reward"] - mean if state in counted else 0.0
            for step in state["trajectory"]:
                step["advantage"] = state["advantage"]


def _metric(name: str, read: Callable[[vf.State], float]) -> Callable[..., Any]:
    async def metric(state: vf.State) -> float:
        return read(state)

    metric.__name__ = name
    return metric
