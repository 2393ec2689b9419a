"""`load_environment`: arguments as people write them, checked, into a `CodeEnv`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codeenv.course import Arguments, course
from codeenv.env import CodeEnv


def load_environment(
    dataset: str | Path | Mapping[str, Any] | Sequence[Any] = "starter",
    *,
    split: str = "",
    filter: Mapping[str, Any] | None = None,
    limit: int | None = None,
    seed: int | None = None,
    tasks: str | Sequence[str] | None = None,
    decontaminate: str | Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    kind: str = "",
    grader: Mapping[str, Any] | None = None,
    strict: bool | None = None,
    field_limit_mb: float | None = None,
    eval_dataset: str | Path | Mapping[str, Any] | Sequence[Any] | None = None,
    eval_split: str = "",
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
    record: str | Path | None = None,
    **unknown: Any,
) -> CodeEnv:
    """Make the environment; every fault of an argument, a task or the host is raised here, before any rollout.

    Which tasks (docs/datasets.md):

    :param dataset: a shipped set, a directory of tasks, a JSONL file, a public set (`humaneval`, `NAME@REVISION`,
        `NAME:FILE`), or, with `columns`, `hf:REPO[:CONFIG][@REVISION]` or a file of rows. Or an object: a `dataset` and
        arguments of this paragraph that are its own. Or several of them: a list, or names with their weights.
    :param split: `train`, `eval`, or a name of the set's own. By default, where a set has both and `tasks` names none,
        training is on the one and evaluation on the other.
    :param filter: metadata that tasks must have: `{"difficulty": ["easy"], "date": {">=": "2024-08-01"}}`.
    :param limit: tasks at most; :param seed: shuffles first, so that `limit` takes a sample.
    :param tasks: only these task ids, in this order; or a report of `codeenv validate`, whose sound tasks are taken.
    :param decontaminate: datasets none of whose prompts may be among the tasks trained on.
    :param columns: what of a task is in which column; :param kind: what the tests are; :param grader: settings of the
        grader: for rows of any schema.
    :param strict: whether one bad row is an error, or is named in the log and left out.
    :param field_limit_mb: MiB of one column; a row with a larger one is bad. By default what the set says:
        mostly 32.
    :param eval_dataset: what evaluations are over, in any form of `dataset`; :param eval_split: its split, or the one
        of `dataset` that evaluations are over.

    How episodes are played:

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
    :param record: a folder, made if it is not there, in which each episode leaves a recording (docs/recordings.md).
    :raises ValueError: an argument is not valid (`TaskError`: a task, `UnsupportedSpec`: a demand on the sandbox); the
        message names it and what is valid.
    :raises FileNotFoundError: there is no such dataset or prompts directory.
    :raises SandboxUnavailable: no such sandbox works on this host.
    """
    given = Arguments.model_construct(**{name: value for name, value in locals().items() if name != "unknown"})
    if unknown:
        valid = [name for name in load_environment.__annotations__ if name not in ("unknown", "return")]
        raise ValueError(f"unknown arguments: {', '.join(sorted(unknown))}; valid: {', '.join(valid)}")
    played = course(given, eval_dataset, eval_split)
    made = CodeEnv(
        played.tasks,
        played.provider,
        settings=played.settings,
        spec=played.spec,
        prompts=played.prompts,
        system_prompt=system_prompt,
        partial_credit=partial_credit,
        eval_tasks=played.eval_tasks,
        record=played.record,
        env_id="codeenv",
    )
    for each in made.specs:
        played.provider.check(each)
    return made
