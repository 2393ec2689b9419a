"""An OpenEnv server: a WebSocket is a session, and each reset in it begins an episode.

    async with serve({"train": tasks}, provider, EpisodeSettings()) as url:
        ...  # any client of OpenEnv's

Tasks, hidden tests and boxes stay here. Whatever is wrong with a request or with a box is an error of the session,
which goes on with the next reset. A box goes with its episode, its session and its server.
"""

# OpenEnv carries no types: what comes from it is Any here, and only here.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import anyio
import uvicorn
from anyio.streams.memory import MemoryObjectReceiveStream
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from codeenv import __version__
from codeenv.calls import ToolCall, definitions
from codeenv.episode import Episode, counter
from codeenv.prompts import Prompts, default_prompts
from codeenv.record import Recordings
from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.sessions import Home, Infra, Refused, Session
from codeenv.settings import EpisodeSettings
from codeenv.sources import Tasks

# OpenEnv's web interface would take seconds to import, and does without itself where it cannot be: we serve none.
sys.modules.setdefault(_WEB := "openenv.core.env_server.web_interface", None)  # type: ignore[arg-type]
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app  # noqa: E402
from openenv.core.env_server.types import ConcurrencyConfig, EnvironmentMetadata  # noqa: E402

if sys.modules[_WEB] is None:  # pyright: ignore[reportUnnecessaryComparison]
    del sys.modules[_WEB]

NAME, DESCRIPTION = "codeenv", "Coding tasks in isolated sandboxes; hidden tests are the score."
STARTING_SECONDS = 30.0
CLOSING_SECONDS = 5  # that sessions get when the server closes; their boxes are gone by then


class Call(BaseModel):
    """A tool call of the policy's. Arguments as it made them: JSON text, or the values."""

    model_config = ConfigDict(extra="forbid")

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict[str, Any])
    id: str = ""


class CodeAction(Action):
    """One message of the policy, which is one turn: its calls with the protocol `tools`, else its text."""

    message: str = ""
    calls: list[Call] = Field(default_factory=list[Call])
    stop: bool = False
    """There is no further message, as a limit of the client's own was reached (tokens, context, time): the work is
    judged as it is."""


class CodeTask(Observation):
    """What a reset gives: what the policy is told before its first message."""

    task_id: str
    messages: list[dict[str, str]]
    tools: list[dict[str, Any]]
    """Name, description and parameters of each, to be offered as native tools; none unless the protocol is `tools`."""
    protocol: str


class Result(BaseModel):
    """What the policy sees of one call."""

    id: str
    tool: str
    text: str
    exit_code: int | None
    failed: bool
    valid: bool


class CodeObservation(Observation):
    """What a message led to; with the last one, which is `done`, the reward and how it came about."""

    text: str
    exit_code: int | None  # of the last call
    results: list[Result]
    """Of each call in order; of a message that is text, or has no calls, the one that `text` is."""
    outcome: str = ""
    tests_passed: int | None = None
    tests_total: int | None = None
    reason: str = ""


class CodeState(State):
    """How far the session's episode is. `step_count` is its turns."""

    task_id: str = ""
    over: str = ""
    """Why it takes no more messages; empty while it does."""
    outcome: str = ""
    tally: dict[str, Any] = Field(default_factory=dict[str, Any])


class CodeEnvironment(Environment[Any, Any, Any]):
    """A session, as OpenEnv's server drives it: on our loop, but for `close`.

    :param ends: takes an episode that is to be ended.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, home: Home, ends: Callable[[Episode], None], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._session = Session(home)
        self._ends = ends
        self._loop = loop

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task_id: str | None = None,
        split: str | None = None,
        index: int | None = None,
        **unknown: Any,
    ) -> CodeTask:
        """End the episode that there is, and begin one: `Home.task` says on which task.

        :raises Refused: an argument is not valid. :raises Infra: the box could not be made.
        """
        if unknown:
            valid = "seed, episode_id, task_id, split, index"
            raise Refused(f"reset: unknown arguments {', '.join(sorted(unknown))}; valid: {valid}")
        episode = await self._session.reset(id=episode_id, task_id=task_id, split=split, index=index, seed=seed)
        settings = episode.settings
        return CodeTask(
            task_id=episode.task.id,
            messages=episode.prompt(),
            tools=definitions(settings.tools) if settings.protocol == "tools" else [],
            protocol=settings.protocol,
        )

    async def step_async(self, action: CodeAction, timeout_s: float | None = None, **_: Any) -> CodeObservation:
        """:raises Refused: there is no episode that takes it. :raises Infra: a box was lost or broke."""
        calls = [ToolCall(call.name, call.arguments, call.id) for call in action.calls]
        seen, verdict = await self._session.step(action.message, calls, stop=action.stop)
        results = [
            Result(
                id=id, tool=each.tool, text=each.text, exit_code=each.exit_code, failed=each.failed, valid=each.valid
            )
            for id, each in zip([call.id for call in calls] or [""], seen, strict=False)
        ]
        texts = [each.text if len(results) == 1 else f"{each.tool}:\n{each.text}" for each in results]
        last = results[-1].exit_code if results else None
        made = CodeObservation(text="\n\n".join(texts), exit_code=last, results=results)
        if verdict is not None:
            made.done, made.reward, made.outcome = True, verdict.reward, verdict.outcome
            made.tests_passed, made.tests_total, made.reason = verdict.tests_passed, verdict.tests_total, verdict.reason
        return made

    @property
    def state(self) -> CodeState:
        session, episode = self._session, self._session.episode
        if episode is None:
            return CodeState(outcome=session.outcome)
        return CodeState(
            episode_id=session.id,
            step_count=episode.tally.turns,
            task_id=episode.task.id,
            over=episode.over,
            outcome=session.outcome,
            tally=vars(episode.tally) | {"calls": dict(episode.tally.calls)},
        )

    def close(self) -> None:
        """The session is over. OpenEnv calls this in a thread, or on the loop, where nothing may wait."""
        session = self._session
        if session.episode is not None and not session.home.closed:
            self._loop.call_soon_threadsafe(self._ends, session.episode)

    def reset(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("reset_async and step_async are what there is")

    step = reset

    def get_metadata(self) -> EnvironmentMetadata:
        return EnvironmentMetadata(name=NAME, description=DESCRIPTION, version=__version__)

    # --- OpenEnv's task API: names and places; what a task is, a reset tells -----------------------------------

    def list_splits(self) -> list[str]:
        return [*self._session.home.splits]

    def num_tasks(self, split: str) -> int:
        return len(self._session.home.split(split))

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        return self._session.home.listed(split, start, stop)

    list_tasks = get_task_range

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """:raises IndexError: there is no such place."""
        return self._session.home.listed(split)[index]


class Server(uvicorn.Server):
    """Signals are left to whoever runs it: uvicorn would raise them again, before boxes are closed."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serve(
    splits: Mapping[str, Tasks],
    provider: SandboxProvider,
    settings: EpisodeSettings,
    *,
    spec: SandboxSpec | None = None,
    prompts: Prompts | None = None,
    record: Recordings | None = None,
    max_sessions: int = 64,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncGenerator[str]:
    """Serve until the block ends, which ends every session and box; the value is the URL. Runs under asyncio or uvloop.

    :param splits: tasks by the name of their split. :param max_sessions: at once; a client beyond gets an error.
    :param record: where episodes leave recordings. :param port: 0 for a free one.
    :raises OSError: the port cannot be had.
    """
    _ = counter().exact  # settled now: loading a table would hold up an episode
    home = Home(splits, provider, settings, spec or SandboxSpec(), prompts or default_prompts(), record)
    v6 = ":" in host
    fault: Exception | None = None
    with socket.create_server((host, port), family=socket.AF_INET6 if v6 else socket.AF_INET) as listening:
        ends, ending = anyio.create_memory_object_stream[Episode](float("inf"))
        async with anyio.create_task_group() as group:
            group.start_soon(_end_all, home, ending)
            session = partial(CodeEnvironment, home, ends.send_nowait, asyncio.get_running_loop())
            app = _app(session, max_sessions, settings)
            server = Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=CLOSING_SECONDS))
            group.start_soon(server.serve, [listening])
            try:
                with anyio.fail_after(STARTING_SECONDS):
                    while not server.started:  # noqa: ASYNC110 - it has no event for it
                        await anyio.sleep(0.01)
                yield f"http://{f'[{host}]' if v6 else host}:{listening.getsockname()[1]}"
            except Exception as error:
                fault = error  # kept from the group, which would cancel the server instead of ending it
            finally:
                await home.close()
                ends.close()
                server.should_exit = True
    if fault is not None:
        raise fault


async def _end_all(home: Home, ending: MemoryObjectReceiveStream[Episode]) -> None:
    async with ending, anyio.create_task_group() as group:
        async for episode in ending:
            group.start_soon(home.end, episode)


def _app(session: Any, max_sessions: int, settings: EpisodeSettings) -> FastAPI:
    # OpenEnv ends sessions without a socket, which its tools can have, when they are idle for so long.
    concurrency = ConcurrencyConfig(max_concurrent_envs=max_sessions, session_timeout=settings.ttl_seconds)
    app = create_fastapi_app(
        session,
        CodeAction,
        CodeObservation,
        concurrency_config=concurrency,
        env_name=NAME,
        state_cls=CodeState,
        reset_observation_cls=CodeTask,
        mode="simulation",
    )
    for kind, status in ((Refused, 400), (Infra, 503)):

        async def answer(_: Request, error: Exception, status: int = status) -> JSONResponse:
            return JSONResponse({"detail": str(error)}, status)

        app.add_exception_handler(kind, answer)
    return app
