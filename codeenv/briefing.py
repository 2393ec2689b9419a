"""What a policy is told before its first turn."""

from __future__ import annotations

from codeenv.calls import definitions
from codeenv.prompts import Prompts
from codeenv.settings import EpisodeSettings
from codeenv.task import Task
from codeenv.text_protocol import fence_for

LISTED_FILES = 100  # of the workspace
SHOWN_CODE = 8000  # characters of the one file to work on, where the policy could read it itself


TEMPLATES = {"project": "task.j2", "function": "function.j2", "program": "program.j2"}
"""By a task's family."""


def system_message(settings: EpisodeSettings, prompts: Prompts, workdir: str) -> str:
    """What every episode of these settings begins with."""
    if settings.protocol == "answer":
        return prompts.render("answer.j2").strip()
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


def task_message(task: Task, prompts: Prompts, workdir: str, protocol: str = "tools") -> str:
    """What the policy reads of a task.

    The file that an answer goes into is shown as it is at the start, unless the instruction holds it: all of it where
    there is nothing but an answer, else of functions and programs, up to `SHOWN_CODE` characters.
    """
    files = sorted(task.files)
    timeout = task.limits.command_timeout
    path = task.answer.path if task.answer else ""
    code = _code(task, path) if protocol == "answer" or task.family != "project" else ""
    if protocol != "answer" and len(code) > SHOWN_CODE:
        code = ""
    return prompts.render(
        TEMPLATES[task.family],
        instruction=task.instruction,
        files=files[:LISTED_FILES],
        more_files=max(0, len(files) - LISTED_FILES),
        workdir=workdir,
        command_timeout=f"{timeout:g}" if timeout else "",
        protocol=protocol,
        path=path,
        entry_point=task.answer.entry_point if task.answer else "",
        code=code,
        fence=fence_for(code),
    ).strip()


def _code(task: Task, path: str) -> str:
    code = task.files.get(path, b"").decode("utf-8", "replace").strip("\n")
    return "" if code.strip() in task.instruction else code
