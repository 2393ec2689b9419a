"""`codeenv serve`: episodes for clients that are elsewhere, in another standard's protocol."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codeenv.cli.options import (
    Filters,
    Image,
    Limit,
    Sandbox,
    SandboxSettings,
    Seed,
    Split,
    choice_of,
    json_object,
    settings_of,
)
from codeenv.cli.terminal import FAILED, USAGE, clear_errors, console, fail

if TYPE_CHECKING:
    from codeenv.sandbox.api import SandboxProvider
    from codeenv.settings import EpisodeSettings
    from codeenv.sources import Tasks

SETTINGS_HELP = "Settings of episodes, a JSON object: max_turns, protocol, tools, feedback, ttl_seconds and so on."
RECORD_HELP = "A folder in which each episode leaves a recording."


def serve(
    openenv: Annotated[bool, typer.Option("--openenv", help="Speak OpenEnv, to its clients.")] = False,
    dataset: Annotated[
        str, typer.Option(help="Whose tasks; a set with a train and an eval split serves both.")
    ] = "starter",
    split: Split = "",
    filters: Filters = None,
    limit: Limit = None,
    seed: Seed = None,
    sandbox: Sandbox = "auto",
    sandbox_setting: SandboxSettings = None,
    image: Image = None,
    settings: Annotated[str, typer.Option("--settings", "-s", help=SETTINGS_HELP)] = "{}",
    max_sessions: Annotated[int, typer.Option(min=1, help="Clients at a time; one more gets an error.")] = 64,
    record: Annotated[Path | None, typer.Option(help=RECORD_HELP)] = None,
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 for everywhere.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8000,
) -> None:
    """Serve episodes until Ctrl-C. Tasks, hidden tests and boxes stay here; who can reach the port can play."""
    if not openenv:
        raise fail("say what to speak: --openenv", USAGE)
    import anyio
    from pydantic import ValidationError

    from codeenv.grading import box_spec
    from codeenv.record import Recordings
    from codeenv.sandbox import get_provider
    from codeenv.sandbox.api import SandboxSpec
    from codeenv.settings import EpisodeSettings, protocol_for
    from codeenv.sources import train_and_eval

    with clear_errors(unavailable=FAILED):
        given = json_object("--settings", settings)
        choice = choice_of(split, filters, limit, seed)
        train, held_out = train_and_eval(dataset, choice)
        splits = {split or "train": train} | ({"eval": held_out} if held_out is not None else {})
        turns = given.get("max_turns", EpisodeSettings().max_turns)
        given["protocol"] = protocol_for(given.get("protocol"), turns, chain(*splits.values()))
        try:
            played = EpisodeSettings.model_validate(given)
        except ValidationError as error:
            faults = error.errors(include_input=False, include_url=False)
            text = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
            raise ValueError(f"--settings: {text}; valid: {', '.join(EpisodeSettings.model_fields)}") from error
        provider = get_provider(sandbox, **settings_of(sandbox_setting))
        spec = SandboxSpec(image=image)
        checked: list[SandboxSpec] = []
        for task in chain(*splits.values()):
            if (needed := box_spec(task, spec)) not in checked:
                provider.check(needed)
                checked.append(needed)
        recordings = Recordings(record, source={"dataset": dataset, **choice}) if record else None
        options: dict[str, Any] = {"spec": spec, "record": recordings, "max_sessions": max_sessions}
        try:
            anyio.run(_serve, splits, provider, played, {**options, "host": host, "port": port})
        except KeyboardInterrupt:
            pass
        except ImportError as error:
            raise ValueError(f"--openenv needs OpenEnv ({error}): pip install 'codeenv[openenv]'") from error
        except OSError as error:
            raise ValueError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error


async def _serve(
    splits: dict[str, Tasks], provider: SandboxProvider, settings: EpisodeSettings, options: dict[str, Any]
) -> None:
    import signal

    import anyio

    from codeenv.openenv import serve

    async with serve(splits, provider, settings, **options) as url:
        out = console()
        out.print(url, markup=False)
        for name, tasks in splits.items():
            out.print(f"{name}: {len(tasks)} tasks of {tasks.name}", markup=False, soft_wrap=True)
        out.file.flush()
        # Also in a shell's background, where an interrupt is ignored unless it is asked for.
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            await anext(signals)
