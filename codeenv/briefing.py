"""What a policy is told before its first turn."""

from __future__ import annotations

from codeenv.calls import definitions
from codeenv.prompts import Prompts
from codeenv.settings import EpisodeSettings
from codeenv.task import Task

LISTED_FILES = 100  # of the workspace


def system_message(settings: EpisodeSettings, prompts: Prompts, workdir: str) -> str:
    """What every episode of these settings begins with."""
    return prompts.render(
        "system.j2",
        workdir=workdir,
        protocol=settings.protocol,
        tools=definitions(settings.tools),
        tool_names=settings.tools,
        command_timeout=f"{settings.command_timeout:g}",
        max_turns=settings.max_turns,
        max_test_runs=settings.max_test_runs,
    ).strip()


def task_message(task: Task, prompts: Prompts, workdir: str) -> str:
    """What the policy reads of a task."""
    files = sorted(task.files)
    timeout = task.limits.command_timeout
    return prompts.render(
        "task.j2",
        instruction=task.instruction,
        files=files[:LISTED_FILES],
        more_files=max(0, len(files) - LISTED_FILES),
        workdir=workdir,
        command_timeout=f"{timeout:g}" if timeout else "",
    ).strip()
