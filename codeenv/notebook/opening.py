"""From a task's name to an open episode."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from anyio import to_thread

from codeenv.episode import Episode
from codeenv.notebook.episode import Folder, OpenEpisode, Stay
from codeenv.notebook.home import home
from codeenv.record.folder import ENDING, Recordings
from codeenv.record.reading import Recording
from codeenv.record.tasks import TaskBook
from codeenv.replay import fork_of
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxProvider
from codeenv.settings import EpisodeSettings
from codeenv.sources import open_tasks
from codeenv.task import Task

SHOWN = 5  # tasks that an error names
LINE = 64  # bytes of a first line that tell what a file is
POLICY = "by hand"
BY_HAND: dict[str, Any] = {"max_turns": 0, "max_test_runs": 0, "ttl_seconds": 4 * 3600.0, "feedback": "messages"}
"""Where these settings differ from an evaluation's: a person takes hours and many small turns, and wants to know why a
test fails."""

What = Task | Recording | str | Path | Mapping[str, Any]


async def open_episode(
    what: What,
    *,
    turn: int | None = None,
    dataset: Any = None,
    sandbox: str | SandboxProvider = "auto",
    record: str | Path | None = None,
    **settings: Any,
) -> OpenEpisode:
    """An episode to play by hand, in a running loop.

    :param what: a task; or what has exactly one: `starter/tip-jar-payout`, a directory of a task, an object of a
        choice's fields (`{"dataset": "humaneval", "tasks": ["HumanEval/0"]}`); or a recording or its file, to go on
        from it.
    :param turn: of a recording: from the end of which turn (0: the start). By default the last before its end.
    :param dataset: of a recording: where its task is, if not where the recording says.
    :param sandbox: a backend's name, or one.
    :param record: a folder in which its recording stays; by default it goes with the episode.
    :param settings: fields of `EpisodeSettings`, over those of a recording. By hand there is no limit of turns and test
        runs, failing tests say why (`feedback="messages"`), and the box lives for four hours (`ttl_seconds`).
    :raises ValueError: a setting or turn is not valid; it is not one task, and the message names some; or a recording
        is damaged (`RecordingError`), its task not to be found (`TaskMissing`) or another now (`TaskChanged`).
    :raises FileNotFoundError: there is no such dataset.
    :raises SandboxError: the box could not be made (`SandboxUnavailable`: such boxes do not work here).
    """
    return await home().call(_opened, what, turn, dataset, sandbox, record, settings)


async def _opened(
    what: What,
    turn: int | None,
    dataset: Any,
    sandbox: str | SandboxProvider,
    record: str | Path | None,
    settings: Mapping[str, Any],
) -> OpenEpisode:
    recording = what if isinstance(what, Recording) else await to_thread.run_sync(_recording, what)
    if recording is None and (turn is not None or dataset is not None):
        raise ValueError("turn and dataset go with a recording, which this is not")
    provider = await to_thread.run_sync(get_provider, sandbox) if isinstance(sandbox, str) else sandbox
    own = Folder(Path(mkdtemp(prefix="codeenv-episode-"))) if record is None else None
    folder = own.path if own else str(record)
    try:
        if recording is None:
            episode = await _new(what, provider, settings, folder)
        else:
            episode = await _going_on(recording, turn, dataset, provider, settings, folder)
    except BaseException:
        if own:
            shutil.rmtree(own.path, ignore_errors=True)
        raise
    return OpenEpisode(Stay(episode, own), home())


async def _new(what: Any, provider: SandboxProvider, settings: Mapping[str, Any], folder: str | Path) -> Episode:
    played = EpisodeSettings.model_validate({**BY_HAND, **settings})
    task = what if isinstance(what, Task) else await to_thread.run_sync(_task, what)
    recordings = Recordings(folder, source=None if isinstance(what, Task) else what, policy=POLICY)
    return await Episode.open(task, provider, played, record=recordings)


async def _going_on(
    recording: Recording,
    turn: int | None,
    dataset: Any,
    provider: SandboxProvider,
    settings: Mapping[str, Any],
    folder: str | Path,
) -> Episode:
    task = await to_thread.run_sync(TaskBook(dataset).find, recording)
    opening = recording.opening
    by_hand = opening.model_copy(update={"settings": {**opening.settings, **BY_HAND, **settings}})
    recordings = Recordings(folder, source=opening.task.source if dataset is None else dataset, policy=POLICY)
    at = sum(not each.over for each in recording.turns) if turn is None else turn
    return await fork_of(replace(recording, opening=by_hand), task, provider, at, record=recordings)


def _recording(what: Any) -> Recording | None:
    """None: it is something else. A file of recordings ends as one of tasks does: its first line tells them apart."""
    path = Path(what).expanduser() if isinstance(what, str | Path) else None
    if path is None or path.suffix != ENDING or not path.is_file():
        return None
    with path.open("rb") as file:
        first = file.readline(LINE)
    return Recording.load(path, partial=True) if b'"kind": "episode"' in first else None


def _task(what: str | Path | Mapping[str, Any]) -> Task:
    tasks = open_tasks(what)
    if len(tasks) == 1:
        return tasks[0]
    names = ", ".join(entry.id for entry in tasks.entries[:SHOWN])
    raise ValueError(
        f"{tasks.name} has {len(tasks)} tasks ({names}, ...), and an episode is on one: "
        f"{{'dataset': {tasks.name!r}, 'tasks': [{tasks.entries[0].id!r}]}}"
    )
