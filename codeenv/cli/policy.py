"""`codeenv policy`: a policy without a model, behind a server that any client can talk to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from codeenv.cli.options import Filters, Limit, ScriptFile, Seed, Split, choice_of
from codeenv.cli.scripts import script_from
from codeenv.cli.terminal import clear_errors, console

if TYPE_CHECKING:
    from codeenv.policies import Script
    from codeenv.task import Task


def policy(
    name: Annotated[str, typer.Argument(help="oracle, wrong, wrong:NAME, noop, garbage or script.")],
    dataset: Annotated[str, typer.Option(help="Whose tasks it knows.")] = "starter",
    split: Split = "",
    filters: Filters = None,
    limit: Limit = None,
    seed: Seed = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 0,
    latency: Annotated[float, typer.Option(min=0, help="Seconds before each answer.")] = 0.0,
    script: ScriptFile = None,
) -> None:
    """Serve a policy over the OpenAI chat-completions protocol until Ctrl-C.

    A request's `model` may name another policy.
    """
    import anyio

    from codeenv.sources import load_tasks

    with clear_errors():
        choice = choice_of(split, filters, limit, seed)
        tasks = load_tasks(dataset, **choice)
        messages = script_from(script, tasks) if script else None
        try:
            anyio.run(_serve, name, tasks, {"dataset": dataset, **choice}, host, port, latency, messages)
        except KeyboardInterrupt:
            pass
        except OSError as error:
            raise ValueError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error


async def _serve(
    name: str, tasks: list[Task], chosen: dict[str, Any], host: str, port: int, latency: float, script: Script | None
) -> None:
    import json
    import shlex
    import signal

    import anyio

    import codeenv
    from codeenv.policies import serve

    async with serve(name, tasks, host=host, port=port, latency=latency, script=script) as server:
        out = console()
        out.print(server.base_url, markup=False)
        flags = f"-m {shlex.quote(name)} "
        if "load_environment" in codeenv.__all__:
            arguments = shlex.quote(json.dumps(chosen))
            flags += f"-b {server.base_url} -k CODEENV_KEY -n {len(tasks)} -r 1 -a {arguments}"
        else:
            given = {key: value if isinstance(value, str) else json.dumps(value) for key, value in chosen.items()}
            flags += f"--client.base-url {server.base_url} --client.api-key-var CODEENV_KEY --no-push "
            flags += " ".join(f"--env.taskset.{key} {shlex.quote(value)}" for key, value in given.items())
        out.print(f"CODEENV_KEY=none vf-eval codeenv {flags}", markup=False, soft_wrap=True)
        out.file.flush()
        # Also in a shell's background, where an interrupt is ignored unless it is asked for.
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            await anext(signals)
