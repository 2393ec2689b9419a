"""From a task's name to an open episode."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from anyio import to_thread

from codeenv.episode import Episode
from codeenv.notebook.episode import OpenEpisode, Stay
from codeenv.notebook.home import home
from codeenv.record.folder import Recordings
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxProvider
from codeenv.settings import EpisodeSettings
from codeenv.sources import open_tasks
from codeenv.task import Task

SHOWN = 5  # tasks that an error names
BY_HAND: dict[str, Any] = {"max_turns": 0, "max_test_runs": 0, "ttl_seconds": 4 * 3600.0, "feedback": "messages"}
"""Where these settings differ from an evaluation's: a person takes hours and many small turns, and wants to know why a
test fails."""

What = Task | str | Path | Mapping[str, Any]


async def open_episode(
    what: What,
    *,
    sandbox: str | SandboxProvider = "auto",
    record: str | Path | None = None,
    **settings: Any,
) -> OpenEpisode:
    """An episode to play by hand, in a running loop.

    :param what: a task; or what has exactly one: `starter/tip-jar-payout`, a directory of a task, an object of a
        choice's fields (`{"dataset": "humaneval", "tasks": ["HumanEval/0"]}`).
    :param sandbox: a backend's name, or one.
    :param record: a folder in which its recording stays; by default it goes with the episode.
    :param settings: fields of `EpisodeSettings`. By hand there is no limit of turns and test runs, failing tests say
        why (`feedback="messages"`), and the box lives for four hours (`ttl_seconds`).
    :raises ValueError: a setting is not valid; or it is not one task, and the message names some.
    :raises FileNotFoundError: there is no such dataset.
    :raises SandboxError: the box could not be made (`SandboxUnavailable`: such boxes do not work here).
    """
    played = EpisodeSettings.model_validate({**BY_HAND, **settings})
    return await home().call(_opened, what, sandbox, record, played)


async def _opened(
    what: What, sandbox: str | SandboxProvider, record: str | Path | None, settings: EpisodeSettings
) -> OpenEpisode:
    task = what if isinstance(what, Task) else await to_thread.run_sync(_task, what)
    provider = await to_thread.run_sync(get_provider, sandbox) if isinstance(sandbox, str) else sandbox
    folder = Path(record if record is not None else mkdtemp(prefix="codeenv-episode-"))
    own = folder if record is None else None
    try:
        source = None if isinstance(what, Task) else what
        recordings = Recordings(folder, source=source, policy="by hand")
        episode = await Episode.open(task, provider, settings, record=recordings)
    except BaseException:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
        raise
    assert episode.recorder is not None
    return OpenEpisode(Stay(episode, episode.recorder, own), home())


def _task(what: str | Path | Mapping[str, Any]) -> Task:
    tasks = open_tasks(what)
    if len(tasks) == 1:
        return tasks[0]
    names = ", ".join(entry.id for entry in tasks.entries[:SHOWN])
    raise ValueError(
        f"{tasks.name} has {len(tasks)} tasks ({names}, ...), and an episode is on one: "
        f"{{'dataset': {tasks.name!r}, 'tasks': [{tasks.entries[0].id!r}]}}"
    )
