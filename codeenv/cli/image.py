"""`codeenv image build`: an environment that boxes start from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codeenv.cli.options import AsJson, SandboxSettings, settings_of
from codeenv.cli.terminal import FAILED, OK, clear_errors, console, fail, print_json

if TYPE_CHECKING:
    from codeenv.sandbox.api import SandboxSpec
    from codeenv.sandbox.beam.images import Made, Recipe
    from codeenv.sandbox.beam.provider import BeamProvider

app = typer.Typer(help="Images that sandboxes start from.", no_args_is_help=True)


@app.callback()
def image() -> None:
    """Images that sandboxes start from."""


@app.command()
def build(
    script: Annotated[Path | None, typer.Option(help="A shell script, run as root with a network.")] = None,
    requirements: Annotated[Path | None, typer.Option(help="A file of Python requirements.")] = None,
    requirement: Annotated[list[str] | None, typer.Option("--requirement", help="One; may be repeated.")] = None,
    base: Annotated[str | None, typer.Option("--from", help="A registry image; by default Beam's own.")] = None,
    python: Annotated[str | None, typer.Option(help="The Python of Beam's own image, as 3.12.")] = None,
    check: Annotated[str, typer.Option(help="A command that must succeed in a box of the image.")] = "",
    cpus: Annotated[float, typer.Option(min=0.1, help="Of the box that it is made in.")] = 2.0,
    memory_mb: Annotated[int, typer.Option(min=64, help="Of the box that it is made in.")] = 4096,
    again: Annotated[bool, typer.Option("--again", help="Even if it was made before.")] = False,
    sandbox_setting: SandboxSettings = None,
    as_json: AsJson = False,
) -> None:
    """Prepare an environment once in a Beam sandbox, keep it as an image, verify it, and print its id.

    Episodes start from it with `--image ID`, or `image = "ID"` in a task.toml. The same recipe on the same account
    gives the same id at once. Exit code 1 when the script, the check or Beam fails.
    """
    from codeenv.sandbox.api import SandboxSpec
    from codeenv.sandbox.beam.images import Recipe, read_requirements
    from codeenv.sandbox.beam.provider import BeamProvider

    with clear_errors(unavailable=FAILED):
        lines = read_requirements(requirements.read_text(encoding="utf-8")) if requirements else ()
        lines += read_requirements("\n".join(requirement or ()))
        recipe = Recipe(lines, script.read_text(encoding="utf-8") if script else "", check)
        if not (recipe.script or recipe.requirements):
            raise ValueError("nothing to prepare: give --script, --requirements or --requirement")
        spec = SandboxSpec(image=base, python=python, cpus=cpus, memory_mb=memory_mb)
        made = _build(BeamProvider(**settings_of(sandbox_setting)), spec, recipe, again)
    if as_json:
        print_json(asdict(made))
    else:
        console().print(made.id, markup=False, soft_wrap=True)
    raise typer.Exit(OK)


def _build(provider: BeamProvider, spec: SandboxSpec, recipe: Recipe, again: bool) -> Made:
    from functools import partial

    import anyio

    from codeenv.sandbox.api import SandboxError, SandboxUnavailable
    from codeenv.sandbox.beam.images import BuildFailed, build

    err = console(error=True)

    def said(line: str) -> None:
        err.print(line, markup=False, soft_wrap=True, style="dim")

    try:
        made = anyio.run(partial(build, provider, spec, recipe, again=again, said=said))
    except SandboxUnavailable:
        raise
    except (SandboxError, BuildFailed) as error:
        raise fail(str(error), FAILED) from error
    said("made before" if made.cached else f"made in {made.seconds:.0f} s")
    return made
