"""`codeenv sandboxes`: boxes that runs on this host have on a backend that bills, and the end of those left over."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codeenv.cli.options import AsJson, SandboxSettings, settings_of
from codeenv.cli.terminal import FAILED, OK, clear_errors, console, fail, print_json, table

if TYPE_CHECKING:
    from codeenv.sandbox.beam.sweep import Box

app = typer.Typer(
    help="Sandboxes of ours that a backend has now, and the end of those that dead runs left.", no_args_is_help=True
)
Backend = Annotated[str, typer.Option(help="Which backend's: beam. Local sandboxes end with their run.")]


@app.command("list")
def list_boxes(backend: Backend = "beam", sandbox_setting: SandboxSettings = None, as_json: AsJson = False) -> None:
    """Show the boxes that runs on this host have made and that are there still, and whether their run lives."""
    from codeenv.sandbox.beam.sweep import boxes

    account, found = _ask(backend, sandbox_setting, boxes)
    if as_json:
        print_json({"gateway": account, "sandboxes": [asdict(box) for box in found]})
    else:
        _show(account, found)
    raise typer.Exit(OK)


@app.command("sweep")
def sweep_boxes(
    backend: Backend = "beam",
    every: Annotated[bool, typer.Option("--all", help="Those of live runs too, and of runs on other hosts.")] = False,
    sandbox_setting: SandboxSettings = None,
    as_json: AsJson = False,
) -> None:
    """End the boxes of dead runs, and no others. Exit code 1 when one could not be ended."""
    from functools import partial

    from codeenv.sandbox.beam.sweep import sweep

    account, found = _ask(backend, sandbox_setting, partial(sweep, all_runs=every))
    ended = sum(box.ended for box in found)
    if as_json:
        print_json({"gateway": account, "ended": ended, "sandboxes": [asdict(box) for box in found]})
    else:
        out = console()
        for box in found:
            if not box.ended:
                out.print(f"{box.id}: {box.error}", markup=False, style="red", soft_wrap=True)
        out.print(f"{account}: ended {ended} of {len(found)} sandboxes that were left over", markup=False)
    raise typer.Exit(OK if ended == len(found) else FAILED)


def _ask(backend: str, pairs: list[str] | None, question: Any) -> tuple[str, list[Box]]:
    import anyio

    from codeenv.sandbox.api import SandboxError

    with clear_errors(unavailable=FAILED):
        if backend != "beam":
            raise ValueError(f"no sandboxes of {backend!r} can outlive their run; valid: beam")
        from codeenv.sandbox.beam.provider import BeamProvider

        account = BeamProvider(**settings_of(pairs)).account
        try:
            return str(account), anyio.run(question, account)
        except SandboxError as error:
            raise fail(str(error), FAILED) from error


def _show(account: str, found: list[Box]) -> None:
    from rich.markup import escape

    out = console()
    if not found:
        out.print(f"{account}: no sandboxes of ours", markup=False)
        return
    shown = table("sandbox", "status", ">seconds", "run", "its run", title=account)
    states = {True: "[green]lives[/]", False: "[red]is dead[/]", None: "cannot be seen from here"}
    for box in found:
        age = "-" if box.seconds is None else f"{box.seconds:.0f}"
        run = f"{box.run_host} {box.run_pid}"
        shown.add_row(escape(box.id), escape(box.status), age, escape(run), states[box.run_lives])
    out.print(shown)
