"""`codeenv eval`: policies or a model on a dataset, through the real `vf-eval`, with a table at the end."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import urlsplit

import typer

from codeenv.cli.options import (
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
    settings_of,
)
from codeenv.cli.scripts import script_from
from codeenv.cli.terminal import COLOURS, FAILED, OK, USAGE, clear_errors, console, fail, progress, table

if TYPE_CHECKING:
    from codeenv.cli.vf_eval import Endpoint, Rollout, Run
    from codeenv.task import Task

POLICY_HELP = "A policy without a model, oracle by default; may be repeated."
PROTOCOL_HELP = "tools, text or answer; answer for one turn where the tasks can be answered so, else tools."
ARGUMENTS_HELP = "Further arguments of load_environment, a JSON object."
KEY = "CODEENV_POLICY_KEY"
SHOWN_ERRORS = 3
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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show vf-eval's own output.")] = False,
) -> None:
    """Evaluate policies or a model on a dataset with vf-eval. Nothing is uploaded.

    Exit code 0 when the run worked, whatever the rewards; 1 when a rollout ended in a failure of the sandbox, or the
    run failed; 2 for wrong usage.
    """
    if model and policy:
        raise fail("give --model or --policy, not both", USAGE)
    if model is None and (base_url or api_key_var):
        raise fail("--base-url and --api-key-var go with --model", USAGE)
    from codeenv.cli.vf_eval import Endpoint, Run
    from codeenv.sandbox import get_provider, public_settings

    infra = 0
    with clear_errors(unavailable=FAILED), ExitStack() as stack:
        own = {"protocol": protocol, "sandbox_settings": settings_of(sandbox_setting), "image": image}
        further: dict[str, Any] = {"sandbox": sandbox}
        further |= {name: value for name, value in own.items() if value} | choice_of(split, filters, limit, seed)
        further |= _object("-a", arguments)
        if max_turns is not None:
            further["max_turns"] = max_turns
        tasks = _tasks(dataset, further)
        get_provider(str(further["sandbox"]), **public_settings(further.get("sandbox_settings")))
        run = Run(
            arguments={"dataset": dataset, **further},
            examples=min(examples or len(tasks), len(tasks)),
            rollouts=rollouts,
            concurrent=concurrent,
            sampling=_object("-S", sampling),
            output_dir=output_dir or Path(stack.enter_context(TemporaryDirectory(prefix="codeenv-eval-"))),
            max_retries=max_retries,
            verbose=verbose,
        )
        if model:
            endpoints = [Endpoint(model, base_url, _key(base_url, api_key_var), _keyless(base_url, api_key_var))]
        else:
            endpoints = stack.enter_context(_served(list(dict.fromkeys(policy or ["oracle"])), tasks, script))
        for endpoint in endpoints:
            found = _evaluate(run, endpoint)
            _show(endpoint.model, found)
            infra += sum(rollout.outcome == "infra" for rollout in found)
    if output_dir:
        console().print(f"results: {output_dir}", markup=False, soft_wrap=True)
    raise typer.Exit(FAILED if infra else OK)


def _evaluate(run: Run, endpoint: Endpoint) -> list[Rollout]:
    from codeenv.cli.vf_eval import EvalFailed

    with progress(f"{run.arguments['dataset']}, {endpoint.model}", run.examples * run.rollouts) as shown:
        try:
            return run(endpoint, on_progress=shown)
        except EvalFailed as error:
            raise fail(str(error), FAILED) from error


def _tasks(dataset: str, arguments: Mapping[str, Any]) -> list[Task]:
    """Those that `load_environment` evaluates on with these arguments."""
    from codeenv.sources import train_and_eval
    from codeenv.sources.choice import Choice

    own = {name: value for name, value in arguments.items() if name in Choice.model_fields and name != "dataset"}
    over = arguments.get("eval_dataset"), arguments.get("eval_split", "")
    train, held_out = train_and_eval(arguments.get("dataset", dataset), own, *over)
    return list(train if held_out is None else held_out)


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{option}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f'{option}: must be a JSON object, such as {{"max_turns": 10}}')
    return cast(dict[str, Any], value)


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


def _show(name: str, rollouts: list[Rollout]) -> None:
    from rich.markup import escape

    out = console()
    shown = table("task", "outcome", ">tests", ">turns", ">seconds", title=name)
    for rollout in rollouts:
        tests = "-" if rollout.total is None or not rollout.counts else f"{rollout.passed}/{rollout.total}"
        colour = COLOURS.get(rollout.outcome, "default")
        shown.add_row(
            escape(rollout.task),
            f"[{colour}]{escape(rollout.outcome)}[/]",
            tests,
            str(rollout.turns) if rollout.counts else "-",
            f"{rollout.seconds:.1f}",
        )
    out.print(shown)
    out.print(_totals(name, rollouts), markup=False)
    errors = Counter(rollout.error for rollout in rollouts if not rollout.counts and rollout.error)
    for error, count in errors.most_common(SHOWN_ERRORS):
        out.print(f"  {count} x {error[:500]}", markup=False, soft_wrap=True, style="magenta")
    out.print()


def _totals(name: str, rollouts: list[Rollout]) -> str:
    rewards = [rollout.reward for rollout in rollouts if rollout.reward is not None]
    solved = sum(rollout.solved for rollout in rollouts)
    mean = f"{sum(rewards) / len(rewards):.3f}" if rewards else "-"
    apart: Mapping[str, int] = Counter(rollout.outcome for rollout in rollouts if not rollout.counts)
    end = f"; not counted: {', '.join(f'{n} {outcome}' for outcome, n in sorted(apart.items()))}" if apart else ""
    return f"{name}: solved {solved} of {len(rewards)}, mean reward {mean}{end}"
