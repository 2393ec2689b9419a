"""What a fork takes along of a box that lives: a copy of its workspace, where that is all that counts."""

from __future__ import annotations

from typing import Literal

from codeenv.judging import unreadable
from codeenv.sandbox.api import ExportTooLarge, Sandbox, SandboxError
from codeenv.sandbox.archive import Archive
from codeenv.shell import Shell

How = Literal["", "snapshot", "replay"]


async def snapshot(sandbox: Sandbox | None, shell: Shell | None, how: How, hindrance: str) -> Archive | None:
    """The workspace as it is now; None: its turns are to be played again, as it is asked for, or as something would be
    left behind.

    :param hindrance: why there is no snapshot to be had. :raises ValueError: there is none, and it is asked for.
    """
    if how == "replay":
        return None
    if hindrance or sandbox is None or shell is None:
        if how == "snapshot":
            raise ValueError(f"how: no snapshot: {hindrance or 'there is no box'}")
        return None
    try:
        workspace = await sandbox.export()
    except (ExportTooLarge, OSError, SandboxError) as error:
        if how == "snapshot":
            if isinstance(error, SandboxError):
                raise
            raise ValueError(f"how: no snapshot: {unreadable(error)}") from error
        return None
    left_behind = workspace.skipped or shell.keeps_outputs
    return workspace if how == "snapshot" or not left_behind else None
