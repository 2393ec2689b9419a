"""The way tests run the verifiers environment in process; and what `small_tasks` has."""

from __future__ import annotations

from typing import Any

from small_tasks import (
    KEY,
    SECRET,
    WrappedProvider,
    WrappedSandbox,
    alive,
    boxes_of,
    double_task,
    policy_process,
    pytest_task,
    write_set,
)
from verifiers.types import ClientConfig

from codeenv.env import CodeEnv
from codeenv.episode import EpisodeSettings
from codeenv.policies import serve
from codeenv.prompts import Prompts
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.task import Task

__all__ = [
    "KEY",
    "SECRET",
    "WrappedProvider",
    "WrappedSandbox",
    "alive",
    "boxes_of",
    "double_task",
    "make_env",
    "play",
    "policy_process",
    "pytest_task",
    "write_set",
]


def make_env(
    tasks: list[Task], provider: SandboxProvider | None = None, system_prompt: str | None = None, **settings: Any
) -> CodeEnv:
    return CodeEnv(
        tasks,
        provider or get_provider("bubblewrap"),
        settings=EpisodeSettings(**settings),
        spec=SandboxSpec(),
        prompts=Prompts(),
        system_prompt=system_prompt,
    )


async def play(
    env: CodeEnv,
    policy: str = "oracle",
    *,
    rollouts: int = 1,
    concurrent: int = 8,
    max_retries: int = 0,
    url: str = "",
    inputs: list[Any] | None = None,
    tasks: list[Task] | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Generate rollouts for every row with a scripted policy behind a real socket, which knows `tasks`: the
    environment's by default. Rows in order, tally included."""
    async with serve(policy, list(env.tasks.values()) if tasks is None else tasks, **options) as server:
        results = await env.generate(
            inputs if inputs is not None else env.get_eval_dataset().repeat(rollouts).to_list(),
            client=ClientConfig(api_key_var=KEY, api_base_url=url or server.base_url, max_retries=0),
            model=policy,
            max_concurrent=concurrent,
            state_columns=["outcome", "task_id", "verdict", "tally"],
            max_retries=max_retries,
            independent_scoring=True,
            on_start=lambda *_: None,
            on_progress=lambda *_: None,
        )
    return [dict(output) for output in results["outputs"]]
