"""`codeenv eval`: policies or a model on a dataset, through the real `vf-eval`, with a table at the end."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from codeenv.cli.interrupts import Interrupted, interruptible
from codeenv.cli.options import (
    AsJson,
    Dataset,
    Filters,
    Image,
    Limit,
    Sandbox,
    SandboxSettings,
    ScriptFile,
    Seed,
    Split,
    choice_of,
    json_object,
    settings_of,
)
from codeenv.cli.scripts import script_from
from codeenv.cli.terminal import FAILED, OK, USAGE, clear_errors, console, fail, print_json

if TYPE_CHECKING:
    from codeenv.cli.live import View
    from codeenv.cli.standing import Standing
    from codeenv.cli.vf_eval import Endpoint, Run
    from codeenv.task import Task

POLICY_HELP = "A policy without a model, oracle by default; may be repeated."
PROTOCOL_HELP = "tools, text or answer; answer for one turn where the tasks can be answered so, else tools."
ARGUMENTS_HELP = "Further arguments of load_environment, a JSON object."
KEY = "CODEENV_POLICY_KEY"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def evaluate(
    dataset: Dataset,
    split: Split = "",
    filters: Filters = None,
    limit: Limit = None,
    seed: Seed = None,
    policy: Annotated[list[str] | None, typer.Option("--policy", "-p", help=POLICY_HELP)] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model instead of a policy.")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", "-b", help="The model's OpenAI-like endpoint.")] = None,
    api_key_var: Annotated[str | None, typer.Option("--api-key-var", "-k", help="The variable with its key.")] = None,
    examples: Annotated[int | None, typer.Option("-n", min=1, help="Tasks, from the first; all by default.")] = None,
    rollouts: Annotated[int, typer.Option("-r", min=1, help="Rollouts a task.")] = 1,
    concurrent: Annotated[int, typer.Option("-c", min=1, help="Rollouts at a time.")] = 8,
    sandbox: Sandbox = "auto",
    sandbox_setting: SandboxSettings = None,
    image: Image = None,
    protocol: Annotated[str | None, typer.Option(help=PROTOCOL_HELP)] = None,
    max_turns: Annotated[int | None, typer.Option(min=0, help="Messages of the policy; 0: no limit.")] = None,
    arguments: Annotated[str, typer.Option("-a", "--env-args", help=ARGUMENTS_HELP)] = "{}",
    sampling: Annotated[str, typer.Option("-S", "--sampling-args", help="For the model, a JSON object.")] = "{}",
    script: ScriptFile = None,
    max_retries: Annotated[int, typer.Option(min=0, help="Of rollouts that the sandbox failed.")] = 3,
    output_dir: Annotated[Path | None, typer.Option("--output-dir", "-o", help="Keep the results here.")] = None,
    record: Annotated[Path | None, typer.Option(help="Keep a recording of each episode in this folder.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show the totals at the end, and nothing else.")] = False,
    as_json: AsJson = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show vf-eval's own output.")] = False,
) -> None:
    """Evaluate policies or a model on a dataset with vf-eval. Nothing is uploaded.

    Exit code 0 when the run worked, whatever the rewards; 1 when a rollout ended in a failure of the sandbox, or the
    run failed; 2 for wrong usage; 130 after Ctrl-C, with a summary of what there was.
    """
    if model and policy:
        raise fail("give --model or --policy, not both", USAGE)
    if model is None and (base_url or api_key_var):
        raise fail("--base-url and --api-key-var go with --model", USAGE)
    from codeenv.cli.vf_eval import Endpoint, Run
    from codeenv.sandbox import get_provider, public_settings

    with clear_errors(unavailable=FAILED), interruptible(), ExitStack() as stack:
        own = {"protocol": protocol, "sandbox_settings": settings_of(sandbox_setting), "image": image}
        further: dict[str, Any] = {"sandbox": sandbox}
        further |= {name: value for name, value in own.items() if value} | choice_of(split, filters, limit, seed)
        further |= json_object("-a", arguments)
        if max_turns is not None:
            further["max_turns"] = max_turns
        tasks = _tasks(dataset, further)
        get_provider(str(further["sandbox"]), **public_settings(further.get("sandbox_settings")))
        kept = _kept(record, further.pop("record", None))
        results = output_dir or Path(stack.enter_context(TemporaryDirectory(prefix="codeenv-eval-")))
        results.mkdir(parents=True, exist_ok=True)
        recordings = kept or Path(stack.enter_context(TemporaryDirectory(prefix="recordings-", dir=results)))
        if kept or as_json or not quiet:  # else nobody looks at them, and they take 5 ms an episode
            further["record"] = str(recordings.absolute())
        run = Run(
            arguments={"dataset": dataset, **further},
            examples=min(examples or len(tasks), len(tasks)),
            rollouts=rollouts,
            concurrent=concurrent,
            sampling=json_object("-S", sampling),
            output_dir=results,
            max_retries=max_retries,
            verbose=verbose,
        )
        if model:
            endpoints = [Endpoint(model, base_url, _key(base_url, api_key_var), _keyless(base_url, api_key_var))]
        else:
            endpoints = stack.enter_context(_served(list(dict.fromkeys(policy or ["oracle"])), tasks, script))
        code = _evaluate(_Job(dataset, run, recordings, kept, output_dir, model is None, quiet, as_json), endpoints)
    raise typer.Exit(code)


@dataclass(frozen=True)
class _Job:
    dataset: str
    run: Run
    recordings: Path
    kept: Path | None
    output_dir: Path | None
    scripted: bool
    quiet: bool
    as_json: bool


def _evaluate(job: _Job, endpoints: Sequence[Endpoint]) -> int:
    """Each endpoint in turn, and what there is to say of it. Returns the exit code."""
    from codeenv.cli import eval_summary as summary
    from codeenv.cli.live import view
    from codeenv.cli.standing import Standing
    from codeenv.cli.vf_eval import EvalFailed
    from codeenv.record.following import Following

    found: dict[str, Standing] = {}
    code = OK
    try:
        for endpoint in endpoints:
            title = f"{Path(job.dataset).name if Path(job.dataset).exists() else job.dataset}, {endpoint.model}"
            # Others may record into the same folder; a model may have another name there than it was asked for by.
            following = Following(job.recordings, endpoint.model if job.scripted else None)
            standing = Standing(title, job.run.total, job.run.concurrent, following, kept=job.kept is not None)
            found[endpoint.model] = standing
            try:
                with view(quiet=job.quiet, plain=job.run.verbose) as shown:
                    _watch(job.run, endpoint, standing, shown)
            finally:
                if not job.as_json:
                    summary.show(endpoint.model, standing, quiet=job.quiet)
            if any(rollout.outcome == "infra" for rollout in standing.rollouts):
                code = FAILED
    except EvalFailed as error:
        fail(str(error), FAILED)
        code = FAILED
    except Interrupted as error:
        console(error=True).print(str(error), markup=False)
        code = error.exit_code
    if job.as_json:
        print_json(summary.as_json(job.dataset, found, job.kept, job.output_dir))
    elif not job.quiet:
        summary.show_places(found, job.kept, job.output_dir)
    return code


def _watch(run: Run, endpoint: Endpoint, standing: Standing, shown: View) -> None:
    """:raises EvalFailed: vf-eval failed, or left nothing."""
    with ExitStack() as after, run.started(endpoint) as going:
        after.callback(lambda: shown(standing, standing.read(going.read())))  # its end may bring more
        while going.runs():
            shown(standing, standing.read(going.read()))
    going.check()


def _kept(record: Path | None, argument: Any) -> Path | None:
    """Where the recordings are wanted, which `-a` may say too. :raises ValueError: it is said twice; or no folder."""
    from codeenv.record import Recordings

    if record and argument:
        raise ValueError("--record: -a has a `record` as well; give one of them")
    return Recordings(record or str(argument)).folder if record or argument else None


def _tasks(dataset: str, arguments: Mapping[str, Any]) -> list[Task]:
    """Those that `load_environment` evaluates on with these arguments."""
    from codeenv.sources import train_and_eval
    from codeenv.sources.choice import Choice

    own = {name: value for name, value in arguments.items() if name in Choice.model_fields and name != "dataset"}
    over = arguments.get("eval_dataset"), arguments.get("eval_split", "")
    train, held_out = train_and_eval(arguments.get("dataset", dataset), own, *over)
    return list(train if held_out is None else held_out)


def _key(base_url: str | None, name: str | None) -> str | None:
    """The variable with the model's key. A server on this machine needs none; vf-eval wants a variable all the same."""
    if name and name not in os.environ:
        raise ValueError(f"--api-key-var: the environment variable {name} is not set")
    if name or not base_url:
        return name
    if urlsplit(base_url).hostname in LOOPBACK:
        return KEY
    raise ValueError("--api-key-var is needed with a --base-url that is not on this machine")


def _keyless(base_url: str | None, name: str | None) -> dict[str, str]:
    """What a server on this machine needs: some key, and no proxy in between."""
    if name or not base_url:
        return {}
    passed_by = ",".join(filter(None, (os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), *LOOPBACK)))
    return {KEY: "none", "NO_PROXY": passed_by, "no_proxy": passed_by}


@contextmanager
def _served(policies: list[str], tasks: list[Task], script: Path | None) -> Generator[list[Endpoint]]:
    from codeenv.cli.vf_eval import Endpoint
    from codeenv.policies import serve_in_thread
    from codeenv.policies.plans import check_policy

    messages = script_from(script, tasks) if script else None
    for name in policies:
        check_policy(name, messages)
    with serve_in_thread(policies[0], tasks, script=messages) as server:
        yield [Endpoint(name, server.base_url, KEY, _keyless(server.base_url, None)) for name in policies]
