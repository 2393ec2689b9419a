"""The verifiers environment: `vf-eval codeenv` and prime-rl reach our episodes through this module, and nothing below
it knows verifiers.

verifiers asks of an environment that nothing but `vf.Error` leaves `setup_state`, `env_response` or a cleanup handler
(anything else ends the whole run), and that scoring happens where errors still count: so grading runs in the cleanup
handler, and reward functions only read.
"""

# verifiers carries no types (its names are resolved at run time): what comes from it is Any here, and only here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import verifiers as vf
from verifiers.decorators import discover_decorated  # pyright: ignore[reportMissingImports]

from codeenv.completion import play, text_of
from codeenv.episode import Episode, EpisodeSettings
from codeenv.grading.verdict import Outcome
from codeenv.prompts import Prompts
from codeenv.record import Recordings, Said
from codeenv.roster import Roster
from codeenv.rubric import CodeRubric
from codeenv.sandbox.api import Sandbox, SandboxError, SandboxProvider, SandboxSpec
from codeenv.scores import public, tally_of
from codeenv.table import table
from codeenv.task import Task, TaskError
from codeenv.tools import Observation, ToolCall, definitions

logger = logging.getLogger(__name__)


class TaskFault(vf.Error):
    """A row that names no task of this environment, or an unforeseen failure of ours: the rollout has no reward."""


class CodeEnv(vf.MultiTurnEnv):
    """Coding episodes over `tasks`, each in a box of `provider`'s; evaluations over `eval_tasks`, where there are any.

    A row carries the prompt and, in `info`, the task's id and digest; tests and solutions stay in this object. After a
    rollout the state has `outcome` (see `Outcome`), `task_id`, and `verdict` (tests by id, without messages), for
    `vf-eval -C`.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        provider: SandboxProvider,
        *,
        settings: EpisodeSettings,
        spec: SandboxSpec,
        prompts: Prompts,
        system_prompt: str | None = None,
        partial_credit: float = 0.0,
        eval_tasks: Sequence[Task] | None = None,
        record: Recordings | None = None,
        **kwargs: Any,
    ) -> None:
        self.provider = provider
        self.settings = settings
        self.spec = spec
        self.prompts = prompts
        self.record = record
        self._episodes: dict[str, Episode] = {}
        self._roster = Roster(provider, settings, spec, prompts, system_prompt)
        self.tasks = self._roster.tasks
        self.specs = self._roster.specs

        train = table(self._rows(tasks))
        held_out = train if eval_tasks is None or eval_tasks is tasks else table(self._rows(eval_tasks))
        rubric = CodeRubric(partial_credit, self.play_completion)
        super().__init__(
            dataset=train,
            eval_dataset=held_out,
            rubric=rubric,
            tool_defs=definitions(settings.tools) if settings.protocol == "tools" else None,  # type: ignore[arg-type]
            max_turns=-1,  # the episode counts: verifiers would drop the last message's actions
            **kwargs,
        )
        # verifiers has grouped ours with a monitor of its own, whose zero advantages would overwrite ours; its one
        # metric is among ours.
        self.rubric = rubric

    def _rows(self, tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
        for row in self._roster.rows(tasks):
            messages = [{"role": "system", "content": row.system}] if row.system else []
            # One JSON string: Arrow would pad and coerce a mapping.
            yield {"prompt": [*messages, {"role": "user", "content": row.question}], "info": json.dumps(row.info)}

    def __post_init__(self) -> None:
        # verifiers installs signal handlers here, which only the main thread may: elsewhere its parent does without.
        if threading.current_thread() is threading.main_thread():
            super().__post_init__()
            return
        self._stop_conditions = discover_decorated(self, "stop")
        self._cleanup_handlers = discover_decorated(self, "cleanup")
        self._teardown_handlers = discover_decorated(self, "teardown")

    def set_max_turns(self, max_turns: int) -> None:
        """For `vf-eval -x` and trainers: the episode's limit, 0 or -1 for none."""
        self.settings = self.settings.model_copy(update={"max_turns": max(0, max_turns)})

    # --- one rollout ----------------------------------------------------------------------------------------

    async def setup_state(self, state: vf.State) -> vf.State:
        """Start the episode.

        :raises vf.SandboxError: its box could not be made. :raises TaskFault: the row is not one of ours.
        """
        async with _only_vf_errors():
            task = await self._task(state)
            state["task_id"] = task.id
            episode = await Episode.open(
                task,
                self.provider,
                self.settings,
                spec=self.spec,
                prompts=self.prompts,
                record=self.record,
                prompt=[
                    {"role": said.get("role"), "content": text_of(said.get("content"))}
                    for said in state.get("prompt") or ()
                ],
                labels=_labels(state),
            )
            self._episodes[state["trajectory_id"]] = episode
        return state

    async def _task(self, state: vf.State) -> Task:
        info = state.get("info")
        if isinstance(info, str):  # a row that nobody has read yet
            info = json.loads(info)
        try:
            return await self._roster.task(info if isinstance(info, Mapping) else {})
        except TaskError as error:
            raise TaskFault(f"row {state.get('example_id')}: {error}") from error

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        """Run the last message's actions and answer each. The last answer of an episode is its final response."""
        async with _only_vf_errors():
            episode = self._episodes[state["trajectory_id"]]
            answers = await self._answers(episode, messages[-1], _said(state))
        if episode.over:
            state["final_env_response"] = answers
        return answers

    async def _answers(self, episode: Episode, message: Any, said: Said) -> vf.Messages:
        if self.settings.protocol == "answer":
            await episode.step(said.text, said=said)
            return []
        if self.settings.protocol == "text":
            observation = await episode.step(said.text, said=said)
            return [vf.UserMessage(content=observation.text)]
        calls = [ToolCall(call.name, call.arguments, call.id) for call in message.get("tool_calls") or []]
        observations: list[Observation] = await episode.turn(calls, said=said)
        if not calls:
            return [vf.UserMessage(content=observations[0].text)]
        return [
            vf.ToolMessage(tool_call_id=call.id, content=observation.text)
            for call, observation in zip(calls, observations, strict=True)
        ]

    @vf.cleanup(priority=50)
    async def finish_episode(self, state: vf.State) -> None:
        """Judge the workspace and destroy the box, whatever ended the rollout. Never raises."""
        episode = self._episodes.pop(state.get("trajectory_id", ""), None)
        error = state.get("error")
        try:
            if error is not None or episode is None:
                state["outcome"] = _outcome_of(error)
                if episode is not None and isinstance(error, BaseException):
                    episode.abandon(state["outcome"], error)
            elif _cancelled():
                state["outcome"] = "infra"  # nobody will read it: only the box matters now
            else:
                await self._judge(episode, state)
        finally:
            if episode is not None:
                await episode.close()
                state["tally"] = tally_of(episode)

    async def play_completion(self, state: vf.State) -> None:
        """For who scores a completion of which there was no rollout, as `openenv import` does: its messages are played
        in an episode, which is judged. :raises vf.Error: as in a rollout; there is no reward."""
        state["trajectory_id"] = uuid4().hex
        await self.setup_state(state)
        episode = self._episodes[state["trajectory_id"]]
        try:
            async with _only_vf_errors():
                await play(episode, state["completion"])
        except vf.Error as error:
            state["error"] = error
        await self.finish_episode(state)
        if state.get("error") is not None:
            raise state["error"]

    async def _judge(self, episode: Episode, state: vf.State) -> None:
        try:
            async with _only_vf_errors():
                if not episode.over and self.settings.protocol == "answer" and state["trajectory"]:
                    # A limit of the framework's kept the message from us, which is there and is the answer.
                    await self._answers(episode, state["trajectory"][-1]["completion"][-1], _said(state))
                if not episode.over:
                    episode.stop()
                verdict = await episode.finish()
        except vf.Error as error:
            state["error"], state["outcome"] = error, _outcome_of(error)
            return
        state["outcome"], state["verdict"] = verdict.outcome, public(verdict)
        state["is_truncated"] = state.get("is_truncated", False) or verdict.outcome == "limit"

    def live_sandbox(self, state: vf.State) -> Sandbox:
        """The box of a rollout that is under way. :raises KeyError: it has none."""
        return self._episodes[state["trajectory_id"]].sandbox

    @vf.teardown
    async def close_episodes(self) -> None:
        while self._episodes:
            await self._episodes.popitem()[1].close()


def _said(state: vf.State) -> Said:
    """The last message, with what its response tells of tokens."""
    step = state["trajectory"][-1] if state.get("trajectory") else {}
    completion = step.get("completion") or [{}]
    message, usage = completion[-1], getattr(step.get("response"), "usage", None)
    return Said(
        text=text_of(message.get("content")),
        reasoning=message.get("reasoning_content") or "",
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        completion_tokens=getattr(usage, "completion_tokens", None),
    )


def _labels(state: vf.State) -> dict[str, Any]:
    """By which a recording is found again in verifiers' results."""
    found = {"policy": state.get("model"), "example_id": state.get("example_id")}
    found["trajectory_id"] = state.get("trajectory_id")
    return {key: value for key, value in found.items() if value is not None}


def _outcome_of(error: object) -> Outcome:
    return "model" if isinstance(error, vf.ModelError) else "infra"


def _cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@asynccontextmanager
async def _only_vf_errors() -> AsyncGenerator[None]:
    """The one boundary at which our errors become the framework's: a sandbox's fault is retried and never trains; a bug
    of ours costs its own rollout and no other."""
    try:
        yield
    except vf.Error:
        raise
    except SandboxError as error:
        raise vf.SandboxError(error.told) from error
    except Exception as error:
        logger.exception("unforeseen failure in an episode")
        raise TaskFault(f"unforeseen failure: {type(error).__name__}: {error}") from error
