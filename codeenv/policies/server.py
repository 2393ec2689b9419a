"""A server on loopback that answers like a model: policies without a model over the OpenAI chat-completions protocol.

It keeps nothing of a conversation. The task is the one whose instruction is in the first user message, the step is the
number of assistant messages, and which wrong solution `wrong` plays is written into its first answer, where every later
request carries it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import anyio
from aiohttp import web
from anyio.from_thread import start_blocking_portal
from pydantic import ValidationError

from codeenv.policies.attempts import Attempts
from codeenv.policies.chat import Answer, ChatRequest, error_body, spoken
from codeenv.policies.message import Message, PolicyError
from codeenv.policies.plans import POLICIES, answer, check_policy, ending, messages
from codeenv.policies.recognise import Recogniser
from codeenv.policies.script import Script
from codeenv.task import Task
from codeenv.tools import TOOLS

REQUEST_LIMIT = 256 * 1024 * 1024  # bytes of one request
PLANS_KEPT = 1024
CLOSING_SECONDS = 0.5  # that open connections get when the server closes

ATTEMPT = re.compile(r"\(attempt (\d+)\)")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class PolicyServer:
    """A running server. `base_url` ends in `/v1`; `requests` counts the completions it was asked for."""

    policy: str
    host: str
    port: int = 0
    requests: int = 0

    @property
    def base_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"


@asynccontextmanager
async def serve(
    policy: str,
    tasks: Sequence[Task],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    latency: float = 0.0,
    script: Script | None = None,
    seed: int = 0,
) -> AsyncGenerator[PolicyServer]:
    """Serve until the block ends. Runs under asyncio or uvloop.

    :param policy: what answers when a request names no model; a request's `model` may name any policy.
    :param port: 0 for a free one. :param latency: seconds before each answer. :param seed: of `garbage`.
    :raises PolicyError: there is no such policy. :raises OSError: the port cannot be had.
    """
    check_policy(policy, script)
    server = PolicyServer(policy, host)
    handlers = _Handlers(server, tasks, latency, script, seed)
    app = web.Application(client_max_size=REQUEST_LIMIT, middlewares=[_errors])
    app.router.add_post("/v1/chat/completions", handlers.complete)
    app.router.add_get("/v1/models", handlers.models)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSING_SECONDS)
    try:
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()


@contextmanager
def serve_in_thread(policy: str, tasks: Sequence[Task], **options: Any) -> Generator[PolicyServer]:
    """`serve` for callers that are not async, in a thread with a loop of its own. Same options and errors."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve(policy, tasks, **options)) as server,
    ):
        yield server


class _Handlers:
    def __init__(
        self, server: PolicyServer, tasks: Sequence[Task], latency: float, script: Script | None, seed: int
    ) -> None:
        self._server = server
        self._latency = latency
        self._script = script
        self._recogniser = Recogniser(tasks)
        self._attempts: defaultdict[str, Iterator[int]] = defaultdict(count)
        self._scripted = Attempts()
        by_id = {task.id: task for task in tasks}

        @lru_cache(maxsize=PLANS_KEPT)
        def planned(policy: str, task_id: str, attempt: int, tools: tuple[str, ...], text: bool) -> list[Message]:
            task = by_id[task_id]
            options: dict[str, Any] = {"attempt": attempt, "seed": seed, "script": script}
            if _is_answered(tools, task):
                return [answer(policy, task, **options)]
            return messages(policy, task, tools=tools or tuple(TOOLS), text=text, **options)

        self._planned = planned

    async def models(self, request: web.Request) -> web.Response:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "codeenv"} for name in POLICIES]
        return web.json_response({"object": "list", "data": data})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        self._server.requests += 1
        try:
            chat = ChatRequest.model_validate_json(await request.read())
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            param = ".".join(map(str, fault["loc"])) or None
            return _refused(400, f"{param}: {fault['msg']}" if param else f"the body: {fault['msg']}", param=param)
        policy = chat.model or self._server.policy
        try:
            check_policy(policy, self._script)
        except PolicyError as error:
            return _refused(404, str(error), code="model_not_found", param="model")
        try:
            answer = self._answer(policy, chat)
        except PolicyError as error:
            return _refused(400, str(error), code="policy_cannot_play")
        if self._latency:
            await anyio.sleep(self._latency)
        if not chat.stream:
            return web.json_response(answer.whole())
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await stream.prepare(request)
        for event in answer.streamed():
            await stream.write(event)
        await stream.write_eof()
        return stream

    def _answer(self, policy: str, chat: ChatRequest) -> Answer:
        task = self._recogniser.find(chat.first_question)
        tools = chat.offered
        attempt = self._attempt(policy, chat, task)
        plan = self._planned(policy, task.id, attempt, tools, not chat.tools)
        message = plan[chat.step] if chat.step < len(plan) else ending(tools or tuple(TOOLS))
        note = f"(attempt {attempt + 1})" if policy == "wrong" and not _is_answered(tools, task) else ""
        return Answer(chat, policy, message, note)

    def _attempt(self, policy: str, chat: ChatRequest, task: Task) -> int:
        """Of a script, the one that the conversation is; of `wrong`, the one that its first answer names. A new
        conversation gets the next."""
        if policy == "script" and self._script is not None:
            attempts = self._script.attempts(task.id)
            if len(attempts) == 1:
                return 0
            tools = bool(chat.tools)
            said_so = [[spoken(message, tools=tools) for message in one[: chat.step]] for one in attempts]
            return self._scripted.next(task.id, said_so, chat.answers)
        if policy != "wrong" or not task.wrong:
            return 0
        said = ATTEMPT.search(chat.first_answer)
        number = int(said.group(1)) - 1 if said else next(self._attempts[task.id]) if chat.step == 0 else 0
        return number % len(task.wrong)


def _is_answered(tools: Sequence[str], task: Task) -> bool:
    """Whether one message is all that is asked for."""
    return not tools and task.answer is not None


def _refused(status: int, message: str, **details: Any) -> web.Response:
    return web.json_response(error_body(message, **details), status=status)


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Everything that goes wrong in OpenAI's form."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _refused(error.status, f"{request.method} {request.path}: {error.reason}")
