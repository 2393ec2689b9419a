"""Writes one episode's recording as it goes."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from platform import python_version
from typing import Any

from anyio import to_thread

from codeenv.calls import ToolCall
from codeenv.grading.verdict import Verdict
from codeenv.grading.workspace import start_digest
from codeenv.record.folder import Recordings, append
from codeenv.record.reading import Recording, sums_of
from codeenv.record.schema import (
    Data,
    End,
    Fault,
    Fork,
    Judged,
    Left,
    Line,
    Opening,
    Raw,
    Result,
    Said,
    Start,
    TaskRef,
    Turn,
)  # fmt: skip
from codeenv.record.workspace import Tree, changes, left_by, look, start_of
from codeenv.rendering import Source
from codeenv.sandbox.api import Sandbox, SandboxError, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.settings import EpisodeSettings
from codeenv.task import Task
from codeenv.tools import Observation

logger = logging.getLogger(__name__)

OUTPUT_LIMIT = 64 * 1024  # bytes of one command's output, its first and its last half
CHANGING = ("bash", "write_file", "edit_file")
"""Tools whose turns are followed by a look at the workspace. What a process in the background does at others is found
at the next of these."""
TEXT_LIMIT = 256 * 1024  # characters of one file that was read


class Recorder:
    """Of one episode. Nothing that goes wrong with the file reaches the episode: the log says it, once, and the
    recording ends there."""

    def __init__(
        self,
        folder: Recordings,
        task: Task,
        settings: EpisodeSettings,
        *,
        labels: Mapping[str, Any],
        fork: Fork | None = None,
    ) -> None:
        self.id, self.path = folder.new(task.id)
        self.folder = folder
        self._task = task
        self._settings = settings
        self._labels = {key: value for key, value in labels.items() if key != "policy"}
        self._policy = str(labels.get("policy") or folder.policy)
        self._fork = fork
        self._began = self._last = time.monotonic()
        self._tree = start_of(task)
        self._unseen = False
        self._turns = 0
        self._recording: Recording | None = None
        self._works = True
        self._ended = False

    @property
    def works(self) -> bool:
        """Whether everything so far was written."""
        return self._works

    @property
    def labels(self) -> dict[str, Any]:
        """As `Episode.open` takes them."""
        return {**self._labels, "policy": self._policy}

    @property
    def tree(self) -> Tree:
        """The workspace after the last turn."""
        return self._tree

    async def open(self, sandbox: str, spec: SandboxSpec) -> None:
        plain = spec.model_dump(mode="json", exclude={"env"}) | {"env": sorted(spec.env)}
        await self._write(
            lambda: Opening(
                id=self.id,
                started=datetime.now(UTC).isoformat(timespec="milliseconds"),
                task=TaskRef(
                    id=self._task.id,
                    digest=self._task.digest,
                    start=start_digest(self._task),
                    source=self.folder.source,
                ),
                sandbox=sandbox,
                settings=self._settings.model_dump(mode="json"),
                spec=plain,
                versions=_versions(),
                policy=self._policy,
                labels=self._labels,
                fork=self._fork,
            )
        )

    async def start(self, seconds: float, workdir: str, prompt: Sequence[Mapping[str, Any]]) -> None:
        self._last = time.monotonic()
        await self._write(lambda: Start(seconds=_rounded(seconds), workdir=workdir, prompt=[dict(m) for m in prompt]))

    async def turn(
        self,
        calls: Sequence[ToolCall],
        observations: Sequence[Observation],
        said: Said,
        *,
        began: float,
        sandbox: Sandbox | None = None,
        cwd: str = "",
        over: str = "",
        error: str = "",
    ) -> None:
        """:param began: when the message came, on the clock of `time.monotonic()`. :param sandbox: None: it is not
        there, or not to be looked at."""
        took, waited = time.monotonic() - began, began - self._last
        before = self._tree
        may_have_changed = self._unseen or any(seen.tool in CHANGING and seen.valid for seen in observations)
        looked = sandbox is not None and may_have_changed
        self._tree = await look(sandbox, self._task, before) if looked and sandbox else Tree(before.seen)
        self._unseen = bool(error) or (may_have_changed and not looked)
        self._turns += 1
        number, after = self._turns, self._tree

        def line() -> Turn:
            return Turn(
                turn=number,
                at=_rounded(began - self._began),
                waited=_rounded(waited),
                seconds=_rounded(took),
                said=said,
                results=[self._result(call, seen) for call, seen in zip(calls, observations, strict=False)],
                diff=changes(before, after),
                diff_note=after.note,
                cwd=cwd,
                over=over,
                error=error,
            )

        await self._write(line)
        self._last = time.monotonic()

    def _result(self, call: ToolCall, seen: Observation) -> Result:
        arguments = dict(call.arguments) if isinstance(call.arguments, Mapping) else call.arguments
        return Result(
            id=call.id,
            name=call.name,
            arguments=arguments,
            fault=call.fault,
            tool=seen.tool,
            text=seen.text,
            failed=seen.failed,
            valid=seen.valid,
            done=seen.done,
            exit_code=seen.exit_code,
            seconds=_rounded(seen.seconds),
            tokens=seen.tokens,
            raw=_raw(seen.source) if seen.source else None,
            verdict=Judged.of(seen.verdict, self._settings.feedback) if seen.verdict else None,
        )

    async def written(self, turns: int) -> list[Turn]:
        """The first turns, as they stand in the file. :raises RecordingError, OSError: they do not any more."""
        found = await to_thread.run_sync(lambda: Recording.load(self.path, partial=True).turns)
        return found[:turns]

    async def inherit(self, turns: Sequence[Turn], tree: Tree) -> None:
        """Those of the episode that this one goes on from, and the workspace after them."""
        for turn in turns:
            await self._write(lambda turn=turn: turn)
        self._turns, self._tree = len(turns), tree
        self._last = time.monotonic()

    async def left(self, archive: Archive) -> None:
        await self._write(lambda: left_by(self._task, archive))

    async def end(
        self, *, outcome: Any, over: str, verdict: Verdict | None, error: BaseException | None, tally: Mapping[str, Any]
    ) -> None:
        """The last line, once."""
        if self._ended:
            return
        self._ended = True
        seconds = time.monotonic() - self._began
        fault = _fault(error) if error else None
        judged = Judged.of(verdict, self._settings.feedback) if verdict else None
        counts = {key: _rounded(value) if isinstance(value, float) else value for key, value in tally.items()}
        await self._write(
            lambda: End(
                seconds=_rounded(seconds),
                outcome=outcome,
                over=over,
                verdict=judged,
                error=fault,
                tally=counts,
                **sums_of(self._recording.turns if self._recording else ()),
            ),
            last=True,
        )

    async def _write(self, line: Any, *, last: bool = False) -> None:
        """Made and written off the event loop: a diff may take its time, and so may a disk."""
        if self._works:
            await to_thread.run_sync(self._write_now, line, last)

    def _write_now(self, make: Any, last: bool) -> None:
        try:
            line: Line = make()
            self._count(line)
            append(self.path, plain(line), new=isinstance(line, Opening))
            if last and self._recording is not None:
                self.folder.note(self._recording.summary)
        except OSError as error:
            self._works = False
            logger.warning("the recording %s ends here: %s", self.path, error)

    def _count(self, line: Line) -> None:
        """Keep what the summary needs, without what is large."""
        if isinstance(line, Opening):
            self._recording = Recording(self.path, line)
        elif self._recording is not None and not isinstance(line, Left):
            if isinstance(line, Turn):
                said = line.said.model_copy(update={"text": "", "reasoning": ""})
                tested = [
                    Result(name=one.name, tool=one.tool, text="", seconds=one.seconds)
                    for one in line.results
                    if one.tool == "run_tests"
                ]
                self._recording.turns.append(line.model_copy(update={"results": tested, "diff": [], "said": said}))
            else:
                part = {"start": line.model_copy(update={"prompt": []})} if isinstance(line, Start) else {"end": line}
                self._recording = replace(self._recording, **part)


def plain(line: Line) -> dict[str, Any]:
    """As it stands in a file: what has its usual value is left out."""
    found: dict[str, Any] = {"kind": line.kind}
    if isinstance(line, Opening):
        found["format"] = line.format
    return found | line.model_dump(exclude_defaults=True)


@cache
def _versions() -> dict[str, str]:
    return {"codeenv": version("codeenv"), "python": python_version()}


def _rounded(seconds: float) -> float:
    return round(seconds, 4)


def _raw(source: Source) -> Raw:
    output, total = source.output, max(source.output_bytes, len(source.output))
    if len(output) > OUTPUT_LIMIT:
        output = output[: OUTPUT_LIMIT - OUTPUT_LIMIT // 2] + output[len(output) - OUTPUT_LIMIT // 2 :]
    return Raw(
        template=source.template,
        values=dict(source.values),
        output=Data.of(output) if output else None,
        output_bytes=total,
        saved_to=source.saved_to,
        text=source.text[:TEXT_LIMIT],
        where=source.where,
    )


def _fault(error: BaseException) -> Fault:
    known = isinstance(error, SandboxError)
    return Fault(
        type=type(error).__name__,
        stage=error.stage if known else "",
        message=str(error),
        seconds=error.seconds if known else None,
    )
