"""`load_environment`: arguments as people write them, checked, into a `CodeEnv`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codeenv.env import CodeEnv
from codeenv.episode import EpisodeSettings, counter
from codeenv.grading import box_spec
from codeenv.prompts import Prompts
from codeenv.sandbox import get_provider, public_settings
from codeenv.sandbox.api import SandboxSpec
from codeenv.settings import protocol_for
from codeenv.sources import choose_tasks, load_tasks
from codeenv.task import Limits


def load_environment(
    dataset: str | Path = "starter",
    *,
    sandbox: str = "auto",
    sandbox_settings: Mapping[str, Any] | None = None,
    max_turns: int = 30,
    protocol: str | None = None,
    tools: Sequence[str] | None = None,
    system_prompt: str | None = None,
    prompts: str | Path | None = None,
    command_timeout: float = 60.0,
    ttl_seconds: float = 1800.0,
    observation_tokens: int = 2000,
    feedback: str = "counts",
    max_test_runs: int = 10,
    grading_retries: int = 0,
    limits: Mapping[str, Any] | None = None,
    python: str | None = None,
    image: str | None = None,
    packages: Sequence[str] = (),
    partial_credit: float = 0.0,
    tasks: Sequence[str] | None = None,
    **unknown: Any,
) -> CodeEnv:
    """Make the environment; every fault of an argument, a task or the host is raised here, before any rollout.

    :param dataset: a shipped set, a directory of tasks, or a JSONL file.
    :param sandbox: "auto", or a backend by name; :param sandbox_settings: its own settings, never its token.
    :param max_turns: messages of the policy; 0 for no limit.
    :param protocol: "tools" (native tool calls), "text" (fenced blocks) or "answer" (one message, whose block of code
        is the answer); None: "answer" with `max_turns=1` where every task can be answered so, else "tools".
    :param tools: names of the tools to offer; all by default.
    :param system_prompt: replaces the rendered system message; "" for none.
    :param prompts: a directory of templates that replace ours by name.
    :param command_timeout: seconds for one command.
    :param ttl_seconds: life of a box; the episode ends a reserve for grading earlier.
    :param observation_tokens: budget of one tool's output.
    :param feedback: what `run_tests` shows: "pass_fail", "counts" or "messages".
    :param max_test_runs: times that `run_tests` runs the tests; 0 for no limit.
    :param grading_retries: times that a failed grade is made again, where the task does not say.
    :param limits: ceilings of every box where the task sets none: memory_mb, disk_mb, processes, cpus.
    :param python: the boxes' Python; :param image: their image, for sandboxes that have images; :param packages: Python
        packages in every box. Where a task has its own, that counts.
    :param partial_credit: this times the fraction of tests passed is added to the reward.
    :param tasks: only these task ids, in this order.
    :raises ValueError: an argument is not valid (`TaskError`: a task, `UnsupportedSpec`: a demand on the sandbox); the
        message names it and what is valid.
    :raises FileNotFoundError: there is no such dataset or prompts directory.
    :raises SandboxUnavailable: no such sandbox works on this host.
    """
    if unknown:
        valid = [name for name in load_environment.__annotations__ if name not in ("unknown", "return")]
        raise ValueError(f"unknown arguments: {', '.join(sorted(unknown))}; valid: {', '.join(valid)}")
    backend = public_settings(sandbox_settings)
    chosen = choose_tasks(load_tasks(dataset), tasks)
    settings = EpisodeSettings.model_validate(
        {
            "protocol": protocol_for(protocol, max_turns, chosen),
            "tools": tools,
            "max_turns": max_turns,
            "command_timeout": command_timeout,
            "ttl_seconds": ttl_seconds,
            "observation_tokens": observation_tokens,
            "feedback": feedback,
            "max_test_runs": max_test_runs,
            "grading_retries": grading_retries,
        }
    )
    if partial_credit < 0:
        raise ValueError(f"partial_credit must be 0 or more, not {partial_credit}")
    ceilings = Limits.model_validate(dict(limits or {})).model_dump(exclude_none=True, exclude={"command_timeout"})
    spec = SandboxSpec(python=python, image=image, packages=tuple(packages), **ceilings)
    templates = Prompts(prompts)
    _ = counter().exact  # settled now: loading a table would hold up an episode
    provider = get_provider(sandbox, **backend)
    needed = {s.model_dump_json(): s for s in (box_spec(task, spec) for task in chosen)}
    for each in needed.values():
        provider.check(each)
    return CodeEnv(
        chosen,
        provider,
        settings=settings,
        spec=spec,
        prompts=templates,
        system_prompt=system_prompt,
        partial_credit=partial_credit,
        dataset_name=str(dataset),
        env_id="codeenv",
    )
