"""Boxes with a workspace in them: the policy's, and those of one grading."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from codeenv.grading.workspace import workspace_of
from codeenv.sandbox.api import Sandbox, SandboxError, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.task import Task

FAR_AWAY = 3.0
"""How many times its timeout a grading may take besides, for the way to boxes that are not on this host."""


@dataclass(frozen=True)
class Boxes:
    """Makes fresh boxes for one grading; `spec` is settled: the task's limits, a TTL that fits the grader's timeout."""

    provider: SandboxProvider
    spec: SandboxSpec
    fresh_hashes: bool = False
    """Whether each Python gets a hash seed of its own, and is not one of many that were forked from one."""

    @asynccontextmanager
    async def open(self, workspace: Archive | None = None) -> AsyncGenerator[Sandbox]:
        """A box for the length of an `async with`, holding `workspace` (None: nothing). Several may be open at once.

        :raises SandboxError: it could not be made. :raises OSError: it refused a file of the workspace.
        """
        async with self.provider.create(self.spec) as box:
            if workspace is not None:
                await box.import_(workspace)
            yield box


async def box_of(task: Task, provider: SandboxProvider, spec: SandboxSpec, workspace: Archive | None = None) -> Sandbox:
    """A box with what the policy starts with, or with another workspace; the caller closes it.

    :raises SandboxError: it could not be made, or does not take the files.
    """
    started = time.monotonic()
    sandbox = await provider.open(spec)
    try:
        await sandbox.import_(workspace_of(task) if workspace is None else workspace)
    except OSError as error:
        await sandbox.close()
        text = f"the task's files do not fit the box: {error}"
        raise SandboxError(text, stage="create", seconds=time.monotonic() - started) from error
    except BaseException:
        await sandbox.close()
        raise
    return sandbox
