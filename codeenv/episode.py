"""One task being worked on: the road that every face of codeenv uses.

    async with Episode.start(task, provider) as episode:
        observation = await episode.step(ToolCall("bash", {"command": "ls"}))
        verdict = await episode.finish()

`Episode.step` takes one action, `Episode.turn` the calls of one message. In the protocol `answer` a whole message is
the one action, and there is no box but those that judge it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from codeenv.answer import NoAnswer, code_of
from codeenv.briefing import system_message, task_message
from codeenv.grading import GRADING_RESERVE, box_spec
from codeenv.grading.boxes import box_of
from codeenv.grading.verdict import Outcome, Verdict
from codeenv.judging import Judge
from codeenv.observation import TokenCounter
from codeenv.played import IS_OVER, TIME_IS_UP, Played
from codeenv.prompts import Prompts, default_prompts
from codeenv.record.folder import Recordings
from codeenv.record.recorder import Recorder
from codeenv.record.schema import Fork, Said, Turn
from codeenv.rendering import Source, rendered
from codeenv.sandbox.api import Sandbox, SandboxError, SandboxExpired, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive
from codeenv.sandbox.metered import Metered
from codeenv.settings import EpisodeSettings, protocol_for
from codeenv.snapshots import How, snapshot
from codeenv.tally import OWN_ENDS, Over, Tally
from codeenv.task import Task
from codeenv.text_protocol import parse
from codeenv.tools import Observation, Toolbox, ToolCall

__all__ = ["Action", "Episode", "EpisodeSettings", "Over", "Said", "Tally", "counter", "system_message", "task_message"]

Action = ToolCall | str
"""A tool call; in the text protocol, a message with fenced blocks; in the answer protocol, the message."""

CALLS_PER_TURN = 32
IDLE_TURNS = 2  # messages without any action, one after the other, that end an episode
SHORTEST_COMMAND = 1.0  # seconds that a command gets however near the deadline is


class Episode:
    """Make it with `Episode.start`, or `Episode.open` where no `async with` can span its life."""

    def __init__(
        self,
        task: Task,
        provider: SandboxProvider,
        settings: EpisodeSettings,
        spec: SandboxSpec,
        sandbox: Sandbox | None,
        prompts: Prompts,
        create_seconds: float,
        recorder: Recorder | None = None,
    ) -> None:
        self.task = task
        self.settings = settings
        self.over: Over = ""
        self.verdict: Verdict | None = None
        self.tally = Tally(create_seconds=create_seconds)
        self.played: list[Played] = []
        """Its turns so far, as they can be played again."""
        self._provider = provider
        self._sandbox = sandbox
        self._born: float | None = time.monotonic() - create_seconds if sandbox else None
        self._spec = spec
        self._prompts = prompts
        self._idle = 0
        self._answer: str | NoAnswer | None = None
        self._fault: BaseException | None = None
        self._abandoned: Outcome | None = None
        self._finishing = False
        self._recorder = recorder
        self._told: Sequence[Mapping[str, Any]] | None = None
        self._command_timeout = task.limits.command_timeout or settings.command_timeout
        reserve = min(task.grader.timeout + GRADING_RESERVE, settings.ttl_seconds / 2)
        self._deadline = time.monotonic() - create_seconds + settings.ttl_seconds - reserve
        self._judge = Judge(task, Metered(provider, self._lived), spec, settings, self.tally, self._note_left)
        self._toolbox = (
            None
            if sandbox is None
            else Toolbox(
                sandbox,
                tools=settings.tools,
                prompts=prompts,
                counter=counter(),
                observation_tokens=settings.observation_tokens,
                run_tests=self._run_tests,
                feedback=settings.feedback,
            )
        )

    @property
    def sandbox(self) -> Sandbox:
        """The policy's box. :raises RuntimeError: there is none in the protocol `answer`."""
        if self._sandbox is None:
            raise RuntimeError("in the protocol 'answer' the policy has no box")
        return self._sandbox

    @property
    def recorder(self) -> Recorder | None:
        return self._recorder

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        task: Task,
        provider: SandboxProvider,
        *,
        spec: SandboxSpec | None = None,
        prompts: Prompts | None = None,
        record: Recordings | str | Path | None = None,
        **settings: Any,
    ) -> AsyncGenerator[Episode]:
        """An episode for the length of an `async with`; its box is gone afterwards, whatever happened.

        `settings` are the fields of `EpisodeSettings`; with one turn and no `protocol`, that is `answer` where the task
        can be answered so. `spec`: what the boxes are like where the task does not say. `record`: a folder in which the
        episode leaves its recording (docs/recordings.md).

        :raises SandboxError: the box could not be made. :raises ValueError: a setting is not valid, or not for this
            task.
        """
        settings["protocol"] = protocol_for(settings.get("protocol"), settings.get("max_turns", 0), [task])
        folder = record if record is None or isinstance(record, Recordings) else Recordings(record)
        episode = await cls.open(task, provider, EpisodeSettings(**settings), spec=spec, prompts=prompts, record=folder)
        try:
            yield episode
        finally:
            await episode.close()

    @classmethod
    async def open(
        cls,
        task: Task,
        provider: SandboxProvider,
        settings: EpisodeSettings,
        *,
        spec: SandboxSpec | None = None,
        prompts: Prompts | None = None,
        record: Recordings | None = None,
        prompt: Sequence[Mapping[str, Any]] | None = None,
        labels: Mapping[str, Any] | None = None,
        fork: Fork | None = None,
        workspace: Archive | None = None,
    ) -> Episode:
        """An episode that the caller must `close()`.

        :param prompt: the messages before its first turn, for the recording, where they are not those of
            `system_message` and `task_message`. :param labels: what the caller calls it, for the recording too; of
            these, `policy` is the policy's name. :param workspace: what the box starts with instead of the task's
            files.
        """
        started = time.monotonic()
        box = box_spec(task, spec).model_copy(update={"ttl_seconds": settings.ttl_seconds})
        single = protocol_for(settings.protocol, settings.max_turns, [task]) == "answer"
        recorder = None
        if record is not None:
            recorder = Recorder(record, task, settings, labels=labels or {}, fork=fork)
            await recorder.open(provider.name, box)
        try:
            sandbox = None if single else await box_of(task, provider, box, workspace)
        except BaseException as error:
            if recorder is not None:
                with anyio.CancelScope(shield=True):
                    await recorder.end(outcome=_outcome_of(error), over="", verdict=None, error=error, tally={})
            raise
        seconds = time.monotonic() - started if sandbox else 0.0
        episode = cls(task, provider, settings, box, sandbox, prompts or default_prompts(), seconds, recorder)
        episode._told = prompt
        if recorder is not None:
            try:
                told = prompt if prompt is not None else episode.prompt()
                await recorder.start(seconds, episode._workdir, told)
            except BaseException:
                await episode.close()
                raise
        return episode

    # --- what the policy is told ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        """The soft deadline, on the clock of `time.monotonic()`."""
        return self._deadline

    def system_message(self) -> str:
        return system_message(self.settings, self._prompts, self._workdir)

    def task_message(self) -> str:
        return task_message(self.task, self._prompts, self._workdir, self.settings.protocol)

    def prompt(self) -> list[dict[str, str]]:
        """The messages before the first turn."""
        told = [("system", self.system_message()), ("user", self.task_message())]
        return [{"role": role, "content": text} for role, text in told if text]

    @property
    def _workdir(self) -> str:
        return self._sandbox.workdir if self._sandbox else self._spec.workdir

    # --- turns ----------------------------------------------------------------------------------------------

    async def step(self, action: Action, *, said: Said | None = None) -> Observation:
        """Take one action, which is one turn, and see what happened. In the text protocol all blocks of the message run
        and their observations are joined; in the answer protocol the message is the answer, and ends the episode.
        `said`: what else is known of the message, for the recording.

        :raises SandboxError: the box is lost. :raises RuntimeError: the episode is over.
        """
        if self.settings.protocol == "answer":
            return await self._answered(action, said)
        if isinstance(action, ToolCall):
            return (await self.turn([action], said=said))[0]
        observations = await self.turn(self.calls_in(action), said=said or Said(text=action))
        if len(observations) == 1:
            return observations[0]
        return Observation(
            text="\n\n".join(f"{o.tool}:\n{o.text}" for o in observations),
            tool="message",
            failed=any(o.failed for o in observations),
            valid=all(o.valid for o in observations),
            done=any(o.done for o in observations),
            exit_code=observations[-1].exit_code,
            seconds=sum(o.seconds for o in observations),
            tokens=sum(o.tokens for o in observations),
        )

    async def _answered(self, message: Action, said: Said | None) -> Observation:
        began = time.monotonic()
        answer = self.task.answer
        if self.over or answer is None or not isinstance(message, str):
            raise RuntimeError(
                f"the episode takes one message as text{f' and is over ({self.over})' * bool(self.over)}"
            )
        self.tally.turns += 1
        said = said if said and said.text == message else (said or Said()).model_copy(update={"text": message})
        self.played.append(Played(said))
        try:
            self._answer = await to_thread.run_sync(code_of, message, answer)
            observation = Observation(f"[the answer is {answer.path}, which is now judged]", "answer", done=True)
            self.over = "submitted"
        except NoAnswer as error:
            self._answer = error
            observation = Observation(f"[not judged: {error}]", "none", failed=True, valid=False, done=True)
            self.over = "no_action"
        self.tally.count(observation)
        if self._recorder is not None:
            answer_call = [ToolCall(observation.tool)]
            await self._recorder.turn(answer_call, [observation], said, began=began, over=self.over)
        return observation

    def calls_in(self, message: str) -> list[ToolCall]:
        """The calls of a message in the text protocol."""
        return [ToolCall(b.tool, b.arguments, fault=b.fault) for b in parse(message, self.settings.tools)]

    async def turn(self, calls: Sequence[ToolCall], *, said: Said | None = None) -> list[Observation]:
        """Take one message's calls in order, one observation each; a message without calls gets one that says so.

        What comes after `submit` in the same message, or past 32 calls, is answered and not run.
        """
        if self.over:
            raise RuntimeError(f"the episode is over ({self.over}); finish() it")
        if self._toolbox is None:
            raise RuntimeError("in the protocol 'answer' there are no calls; step() takes the message")
        self.tally.turns += 1
        began = time.monotonic()
        observations: list[Observation] = []
        try:
            await self._take_all(calls, self._toolbox, observations)
        except BaseException as error:
            await self._note(calls, observations, said, began, error)
            raise
        await self._note(calls, observations, said, began)
        return observations

    async def _take_all(self, calls: Sequence[ToolCall], toolbox: Toolbox, observations: list[Observation]) -> None:
        if not calls:
            observations.append(self._idle_turn())
            return
        self._idle = 0
        for number, call in enumerate(calls):
            if self.over:
                call = ToolCall(call.name, id=call.id, fault=f"{IS_OVER} ({self.over})")
            elif number >= CALLS_PER_TURN:
                call = ToolCall(call.name, id=call.id, fault=f"more than {CALLS_PER_TURN} calls in one message")
            observations.append(await self._take(call, toolbox))
        if not self.over and self.settings.max_turns and self.tally.turns >= self.settings.max_turns:
            self.over = "turns"

    async def _note(
        self,
        calls: Sequence[ToolCall],
        observations: Sequence[Observation],
        said: Said | None,
        began: float,
        error: BaseException | None = None,
    ) -> None:
        verdicts = tuple(seen.verdict for seen in observations if seen.verdict)
        broken = _broken_off(error) if error else ""
        self.played.append(Played(said or Said(), tuple(calls[: len(observations)]), verdicts, broken))
        if self._recorder is None or self._toolbox is None:
            return
        with anyio.CancelScope(shield=error is not None):
            await self._recorder.turn(
                calls or [ToolCall(observations[0].tool)],
                observations,
                said or Said(),
                began=began,
                sandbox=None if error else self._sandbox,
                cwd=self._toolbox.cwd,
                over=self.over,
                error=broken,
            )

    async def _take(self, call: ToolCall, toolbox: Toolbox) -> Observation:
        left = self._deadline - time.monotonic()
        if not self.over and left <= 0:
            self.over = "time"
            call = ToolCall(call.name, id=call.id, fault=TIME_IS_UP)
        try:
            timeout = min(self._command_timeout, max(left, SHORTEST_COMMAND))
            observation = await toolbox.call(call, timeout=timeout)
        except SandboxExpired as error:
            self.over = "expired"
            name = call.name if call.name in self.settings.tools else "unknown"
            observation = Observation(f"[{error}]", name, failed=True, done=True)
        if observation.done and not self.over:
            self.over = "submitted"
        self.tally.count(observation)
        return observation

    def _idle_turn(self) -> Observation:
        self._idle += 1
        if self._deadline <= time.monotonic():
            self.over = "time"
        elif self._idle >= IDLE_TURNS:
            self.over = "no_action"
        elif self.settings.max_turns and self.tally.turns >= self.settings.max_turns:
            self.over = "turns"
        source = Source("no_action.j2", {"protocol": self.settings.protocol, "tool_names": self.settings.tools})
        text = rendered(source, self._prompts, counter(), self.settings.observation_tokens)
        tokens = counter().count(text)
        observation = Observation(text, "none", failed=True, valid=False, tokens=tokens, source=source)
        self.tally.count(observation)
        return observation

    async def _run_tests(self) -> Verdict:
        # What is judged now may take as long as the episode has left, and not from the reserve for the end.
        return await self._judge.now(self.sandbox, max(self._deadline - time.monotonic(), SHORTEST_COMMAND))

    # --- again ----------------------------------------------------------------------------------------------

    async def play(self, turn: Played, *, given: bool = False) -> None:
        """Take a turn that was played before, perhaps in another episode: the calls that were answered then.

        :param given: whether `run_tests` is answered with the verdicts of then, which costs no grading.
        :raises SandboxError: the box is lost. :raises RuntimeError: the episode is over.
        """
        if self.settings.protocol == "answer":
            await self.step(turn.said.text, said=turn.said)
        elif turn.broken and not turn.calls:
            await self._pass(turn)
        else:
            self._judge.given.extend(turn.verdicts if given else ())
            try:
                await self.turn(turn.calls, said=turn.said)
            finally:
                self._judge.given.clear()

    async def _pass(self, turn: Played) -> None:
        """A turn of which nothing was answered: it counts, and does nothing."""
        self.tally.turns += 1
        self.played.append(turn)
        if self._recorder is not None and self._toolbox is not None:
            now = time.monotonic()
            await self._recorder.turn([], [], turn.said, began=now, cwd=self._toolbox.cwd, error=turn.broken)

    async def fork(self, turn: int | None = None, *, how: How = "") -> Episode:
        """A new episode that goes on from the end of `turn` of this one: 0 is the start, None the present. The caller
        must `close()` it; this one is not disturbed, and may be over or closed.

        Its workspace, dot-files too, and its shell's directory and exported variables are those of then. Turns, calls
        and runs of tests up to then count as its own, so that it has the rest of them; its box, its time to live, its
        seconds and its recording, which begins with those turns, are its own.

        `how`: "snapshot" copies the workspace and the shell as they are now: the same also where commands depend on
        the time or on chance. It leaves behind running processes, special files and everything outside the workspace.
        "replay" makes the calls again in a fresh box, and answers `run_tests` as it was answered then; a call that was
        broken off is left out. By default it is a snapshot for the present turn, unless that is known to leave
        something behind (outputs that were kept, special files, a workspace over 64 MiB), else a replay.

        Not while a turn is being taken. :raises ValueError: there is no such turn, or no snapshot to be had of it; says
            why. :raises SandboxError: the fork's box could not be made or was lost; none is left.
        """
        at = len(self.played) if turn is None else turn
        if not 0 <= at <= len(self.played):
            raise ValueError(f"turn: must be 0 to {len(self.played)}, the turns that were played, not {turn}")
        shell = self._toolbox.shell if self._toolbox else None
        workspace = await snapshot(self._sandbox, shell, how, self._no_snapshot(at))
        recorder = self._recorder
        past = await recorder.written(at) if recorder and workspace is not None else []
        episode = await Episode.open(
            self.task,
            self._provider,
            self.settings,
            spec=self._spec,
            prompts=self._prompts,
            record=recorder.folder if recorder else None,
            prompt=self._told,
            labels=recorder.labels if recorder else None,
            fork=Fork(id=recorder.id, turn=at) if recorder else None,
            workspace=workspace,
        )
        try:
            if workspace is None:
                for played in self.played[:at]:
                    await episode.play(played, given=True)
            else:
                await episode._continue(self, past)
        except BaseException:
            await episode.close()
            raise
        return episode

    def _no_snapshot(self, turn: int) -> str:
        """Why there is none."""
        if turn != len(self.played):
            return f"it is turn {len(self.played)} now"
        if self._toolbox is None or self._born is None:
            return "there is no box"
        if self._recorder is not None and not self._recorder.works:
            return "its recording, which the fork's begins with, has ended before"
        if self._provider.capabilities.isolation == "none":
            return "boxes of this sandbox have each a directory of its own name, which what is in it may know"
        return ""

    async def _continue(self, other: Episode, past: Sequence[Turn]) -> None:
        """Be where another episode is, whose workspace is there already."""
        assert self._toolbox is not None
        assert other._toolbox is not None
        self.tally.take_counts(other.tally)
        self.played, self._idle = [*other.played], other._idle
        self.over = other.over if other.over in OWN_ENDS else ""
        self._toolbox.shell.state = other._toolbox.shell.state
        if self._recorder is not None and other._recorder is not None:
            await self._recorder.inherit(past, other._recorder.tree)

    # --- the end --------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take no more actions: the caller's own limit (tokens, context, time) ended the episode."""
        self.over = self.over or "stopped"

    async def finish(self) -> Verdict:
        """Kill what still runs, take the workspace, close the box, judge in a fresh one. The first verdict stands.

        Outcome `limit` when turns, time or the caller's limit ended the episode; `expired` when the box's TTL did.

        :raises SandboxError: the box was lost, or the grader's broke: there is no verdict.
        """
        if self.verdict is not None:
            return self.verdict
        if self._fault is not None:
            raise self._fault
        started = time.monotonic()
        self._finishing = True
        try:
            if self._sandbox is None:
                self.verdict = await self._judge.answer(self._answer, self.over)
            else:
                self.verdict = await self._judge.work(self._sandbox, self.over, self.close)
        except SandboxError as error:
            self._fault = error
            raise
        finally:
            self.tally.grade_seconds += time.monotonic() - started
            self._finishing = False
            await self.close()
        return self.verdict

    def abandon(self, outcome: Outcome, error: BaseException) -> None:
        """There will be no verdict, and why: for the recording of an episode that is now closed."""
        self._abandoned, self._fault = outcome, self._fault or error

    async def _note_left(self, left: Archive) -> None:
        if self._recorder is not None:
            await self._recorder.left(left)

    async def close(self) -> None:
        """Destroy the box. Idempotent, never raises."""
        was, self.over = self.over, self.over or "stopped"
        if self._sandbox is not None:
            with anyio.CancelScope(shield=True):
                await self._sandbox.close()
        born, self._born = self._born, None
        if born is not None:
            self._lived(time.monotonic() - born)
        if self._recorder is not None and not self._finishing:
            with anyio.CancelScope(shield=True):
                await self._recorder.end(
                    outcome=self.verdict.outcome if self.verdict else self._abandoned or _outcome_of(self._fault),
                    over=was,
                    verdict=self.verdict,
                    error=self._fault,
                    tally=self.tally.plain(),
                )

    def _lived(self, seconds: float) -> None:
        self.tally.box_seconds += seconds


def _outcome_of(error: BaseException | None) -> Outcome | None:
    return "infra" if isinstance(error, SandboxError) else None


def _broken_off(error: BaseException) -> str:
    # What a cancellation says of itself are addresses in memory.
    return "interrupted" if isinstance(error, anyio.get_cancelled_exc_class()) else f"{type(error).__name__}: {error}"


_counter = TokenCounter()


def counter() -> TokenCounter:
    """The process's one token counter: its tables are large, and an estimate must not change half way."""
    return _counter
