"""The face for `verifiers.v1` (0.3.1 and 0.4.0): a taskset, the tasks that it loads, and the harness that plays them.

The harness runs no program: it carries the conversation between the rollout's endpoint, by which the framework sees
every message, and our `Episode`, whose box is the provider's that the taskset names. The framework's own runtime
stays empty. Hidden tests never leave this process: a task's data, which is published, is its id, digest and prompt.

What the framework rebuilds of a task, in a worker of its own or to score a saved trace again, is its data and its
config: so the config carries the taskset's arguments, and what they come to is made once in a process.
"""

# verifiers carries no types (its names are resolved at run time): what comes from it is Any here, and only here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false, reportInvalidTypeArguments=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Self

import verifiers.v1 as vf
from openai import APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient
from openai.resources.chat import AsyncCompletions
from pydantic import Field, PrivateAttr, model_validator

from codeenv import scores
from codeenv.course import Arguments, Course, course
from codeenv.episode import Episode, Said
from codeenv.grading import box_spec, grade, workspace_of
from codeenv.grading.workspace import laid_over
from codeenv.roster import Roster
from codeenv.sandbox.api import SandboxError
from codeenv.task import Task
from codeenv.tools import ToolCall, definitions

INFO = "codeenv"
"""Under which a trace's `info` has the outcome, the verdict and the tally."""


class CodeTaskConfig(vf.TaskConfig):
    _arguments: Arguments = PrivateAttr(default_factory=Arguments)
    """The taskset's."""

    @property
    def stage(self) -> Stage:
        return _stage(self._arguments.model_dump_json())


class CodeTasksetConfig(vf.TasksetConfig, Arguments):
    """`system_prompt` is a file here; an evaluation over other tasks is a taskset of its own, with `split = "eval"`."""

    task: CodeTaskConfig = CodeTaskConfig()

    @model_validator(mode="after")
    def _hand_down(self) -> Self:
        weight = vf.RewardFunctionConfig(weight=self.partial_credit)
        rewards = {**self.task.rewards, "tests_passed_fraction": weight}
        self.task = self.task.model_copy(update={"rewards": rewards})
        own = self.model_dump(include=set(Arguments.model_fields))
        self.task._arguments = Arguments.model_validate(own)  # pyright: ignore[reportPrivateUsage]
        return self


class Stage(Roster):
    """What arguments come to, in this process."""

    def __init__(self, arguments: Arguments) -> None:
        self.course = course(arguments)
        super().__init__(self.course.provider, self.course.settings, self.course.spec, self.course.prompts)
        for _ in self.rows(self.course.tasks):
            pass  # each is noted
        for needed in self.specs:
            self.course.provider.check(needed)


@cache
def _stage(arguments: str) -> Stage:
    return Stage(Arguments.model_validate_json(arguments))


class CodeState(vf.State):
    """What a rollout has in this process: the task sets it up, the harness plays and closes it, the task judges it."""

    _course: Course | None = PrivateAttr(None)
    _task: Task | None = PrivateAttr(None)
    _episode: Episode | None = PrivateAttr(None)

    @property
    def episode(self) -> Episode | None:
        return self._episode

    def set_up(self, course: Course, task: Task) -> None:
        self._course, self._task = course, task

    async def open(self, **named: Any) -> Episode:
        """:raises vf.SandboxError: the box could not be made. :raises ValueError: no task of ours has set it up."""
        if self._course is None or self._task is None:
            raise ValueError("the harness 'codeenv' plays tasks of the taskset 'codeenv'")
        with _typed():
            self._episode = await self._course.open(self._task, **named)
        return self._episode


class CodeData(vf.TaskData):
    id: str = ""
    source: str = ""
    digest: str = ""


class CodeTask(vf.Task[CodeData, CodeState, CodeTaskConfig]):
    """After a rollout the trace's `info` has, under "codeenv", `task_id`, `outcome`, and of what was judged `verdict`
    (tests by id, without messages) and `tally`."""

    config: Any

    async def _task(self) -> Task:
        return await self.config.stage.task({"task_id": self.data.id, "digest": self.data.digest})

    async def setup(self, trace: Any) -> None:
        """:raises TaskError: the data is of no task of ours. :raises ValueError: another harness would play it."""
        harness = trace.agent.config.harness
        if harness is not None and not isinstance(harness, CodeHarnessConfig):
            raise ValueError(f"the harness {harness.id!r} has no boxes of ours: tasks of this taskset need 'codeenv'")
        trace.info[INFO] = {"task_id": self.data.id}
        trace.state.set_up(self.config.stage.course, await self._task())

    async def finalize(self, trace: Any) -> None:
        """Judge what the policy left. :raises vf.SandboxError: the box was lost, or the grader's broke."""
        # Without an episode nobody has played: the untouched workspace is judged.
        episode = trace.state.episode or await trace.state.open()
        if not episode.over:
            episode.stop()
        with _typed():
            verdict = await episode.finish()
        judged = {"verdict": scores.public(verdict), "tally": scores.tally_of(episode)}
        trace.info[INFO] |= {"outcome": verdict.outcome, **judged}

    async def validate(self, runtime: Any) -> bool | None:
        """Whether the reference passes and the untouched workspace fails; None where there is no reference."""
        task, course = await self._task(), self.config.stage.course
        if task.solution is None:
            return None
        spec = box_spec(task, course.spec)
        with _typed():
            solved = await grade(task, laid_over(task, task.solution), course.provider, spec)
            untouched = await grade(task, workspace_of(task), course.provider, spec)
        return solved.solved and not untouched.solved

    @vf.reward
    async def hidden_tests(self, trace: Any) -> float:
        return scores.hidden_tests(_ended(trace))

    @vf.reward(weight=0.0)
    async def tests_passed_fraction(self, trace: Any) -> float:
        return scores.tests_passed_fraction(_ended(trace))

    @vf.metric
    async def figures(self, trace: Any) -> dict[str, float]:
        read = {name: read(_ended(trace)) for name, read in scores.METRICS.items()}
        return {"num_turns": float(trace.num_turns), **read}


class CodeTaskset(vf.Taskset[CodeTask, CodeTasksetConfig]):
    """Every fault of the arguments, a task or the host is raised when it is made."""

    def __init__(self, config: CodeTasksetConfig) -> None:
        super().__init__(config)
        self._stage = config.task.stage

    def load(self) -> Iterator[CodeTask]:
        for number, row in enumerate(self._stage.rows(self._stage.course.tasks)):
            data = CodeData(
                idx=number,
                id=row.id,
                name=row.id,
                source=row.source,
                digest=row.digest,
                prompt=row.question,
                system_prompt=row.system or None,
            )
            yield CodeTask(data, self.config.task)


class CodeHarnessConfig(vf.HarnessConfig):
    model_retries: int = Field(default=10, ge=0)
    """Times that a request to the endpoint is made again when it is busy, fails or cannot be reached."""


class CodeHarness(vf.Harness[CodeHarnessConfig]):
    """Carries messages between the model and an episode. Nothing runs in the framework's runtime."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: dict[str, str], data: Any
    ) -> vf.ProgramResult:
        """:raises vf.SandboxError: the box could not be made, or was lost. :raises APIStatusError: the model failed."""
        if not isinstance(trace.state, CodeState):
            raise ValueError("the harness 'codeenv' plays tasks of the taskset 'codeenv'")
        system, question = self.resolve_text_prompt(data)
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": question})
        labels = {"policy": ctx.model, "example_id": data.idx, "trajectory_id": trace.id}
        episode = await trace.state.open(prompt=[*messages], labels=labels)
        names = episode.settings.tools if episode.settings.protocol == "tools" else ()
        offered: Any = (
            {"tools": [{"type": "function", "function": tool} for tool in definitions(names)]} if names else {}
        )
        # On loopback no certificate is looked at; to load those there are takes as long as some episodes.
        http = DefaultAsyncHttpxClient(verify=not endpoint.startswith("http:"))
        settings: Any = {"base_url": endpoint, "api_key": secret, "timeout": None, "http_client": http}
        async with AsyncOpenAI(**settings, max_retries=self.config.model_retries) as connection:
            model = AsyncCompletions(connection)  # `connection.chat` would import it now, which takes a second
            while not episode.over:
                try:
                    said = await model.create(model=ctx.model, messages=messages, **offered)
                except APIStatusError as error:
                    if _too_long(error):
                        trace.stop("context_length")
                    if trace.stop_condition is None:
                        raise
                    break  # a limit of the framework's: what there is will be judged
                message = said.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                with _typed():
                    messages += await _answers(episode, message, said.usage)
        if episode.over == "turns":
            trace.stop("max_turns")
        return vf.ProgramResult(0, "", "")

    async def cleanup(self, trace: Any, runtime: Any) -> None:
        noted, episode = trace.info.get(INFO), getattr(trace.state, "episode", None)
        failed = trace.errors[-1] if trace.errors else None
        if noted is not None and "outcome" not in noted:
            noted["outcome"] = "model" if failed and failed.type == "ProviderError" else "infra"
            if episode is not None and failed:
                episode.abandon(noted["outcome"], RuntimeError(f"{failed.type}: {failed.message}"))
        if episode is not None:
            await episode.close()


class CodeEnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    """The policy. Its runtime stays empty: a directory of this host is enough."""


class CodeTasksetEnv(vf.SingleAgentEnv, vf.Env[CodeEnvConfig]):
    """One policy, one episode."""


@contextmanager
def _typed() -> Generator[None]:
    """A sandbox's fault is the framework's: an error that may be retried and never trains. Any other failure the
    framework names after the hook that it came from."""
    try:
        yield
    except SandboxError as error:
        raise vf.SandboxError(error.told) from error


def _ended(trace: Any) -> Mapping[str, Any]:
    return trace.info.get(INFO) or {}


async def _answers(episode: Episode, message: Any, usage: Any) -> list[dict[str, Any]]:
    """What the conversation goes on with."""
    said = Said(
        text=message.content or "",
        reasoning=getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or "",
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        completion_tokens=getattr(usage, "completion_tokens", None),
    )
    if episode.settings.protocol != "tools":
        observation = await episode.step(said.text, said=said)
        return [{"role": "user", "content": observation.text}]
    made = [call for call in message.tool_calls or [] if call.type == "function"]
    calls = [ToolCall(call.function.name, call.function.arguments, call.id) for call in made]
    observations = await episode.turn(calls, said=said)
    if not calls:
        return [{"role": "user", "content": observations[0].text}]
    return [
        {"role": "tool", "tool_call_id": call.id, "content": observation.text}
        for call, observation in zip(calls, observations, strict=True)
    ]


def _too_long(error: APIStatusError) -> bool:
    """Whether the conversation is longer than the model takes. 0.3.1 finds that out by itself."""
    try:
        from verifiers.v1.harnesses.utils.compaction import is_context_overflow  # pyright: ignore[reportMissingImports]
    except ImportError:
        return False
    return is_context_overflow(error)
