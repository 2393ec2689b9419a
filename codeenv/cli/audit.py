"""`codeenv audit`: whether cheats pay."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from codeenv.cli.options import (
    AsJson,
    Dataset,
    Filters,
    Image,
    Limit,
    Sandbox,
    SandboxSettings,
    Seed,
    Split,
    choice_of,
    settings_of,
)
from codeenv.cli.terminal import FAILED, INFRA, OK, clear_errors, console, print_json, progress, table

if TYPE_CHECKING:
    from codeenv.audit import Attempt
    from codeenv.grading.cheats import Cheat
    from codeenv.sandbox.api import SandboxProvider
    from codeenv.task import Task

RESULTS = ("paid", "failed", "infra", "not applicable")


def audit(
    dataset: Dataset,
    split: Split = "",
    filters: Filters = None,
    limit: Limit = None,
    seed: Seed = None,
    sandbox: Sandbox = "auto",
    sandbox_setting: SandboxSettings = None,
    image: Image = None,
    tasks: Annotated[str, typer.Option(help="Only these task ids, separated by commas.")] = "",
    cheats: Annotated[str, typer.Option(help="Only these cheats or families, separated by commas.")] = "",
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Episodes at a time.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Play a battery of cheats against every task, on the road of a real episode, and name each that pays.

    Exit code 0 when none does, 1 when one does, 3 when the sandbox failed on some and none is known to pay.
    """
    import anyio

    from codeenv.grading.cheats import choose
    from codeenv.sandbox import get_provider
    from codeenv.sources import load_tasks

    with clear_errors(unavailable=INFRA):
        battery = choose(_names(cheats))
        chosen = load_tasks(dataset, tasks=_names(tasks) or None, **choice_of(split, filters, limit, seed))
        attempts = anyio.run(_run, chosen, battery, get_provider(sandbox, **settings_of(sandbox_setting)), image, jobs)
    order = {cheat.name: number for number, cheat in enumerate(battery)}
    attempts.sort(key=lambda attempt: (order[attempt.cheat], attempt.task))
    counts = Counter(attempt.result for attempt in attempts)
    if as_json:
        totals = {result.replace(" ", "_"): counts[result] for result in RESULTS}
        print_json({"tasks": len(chosen), "cheats": len(battery), **totals, "attempts": [asdict(a) for a in attempts]})
    else:
        _show(attempts, battery, counts)
    raise typer.Exit(FAILED if counts["paid"] else INFRA if counts["infra"] else OK)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


async def _run(
    tasks: list[Task], battery: tuple[Cheat, ...], provider: SandboxProvider, image: str | None, jobs: int
) -> list[Attempt]:
    from codeenv import audit as core
    from codeenv.sandbox.api import SandboxSpec

    attempts: list[Attempt] = []
    with progress("auditing", len(tasks) * len(battery)) as shown:
        async with core.audit(tasks, provider, spec=SandboxSpec(image=image), battery=battery, jobs=jobs) as arriving:
            async for attempt in arriving:
                attempts.append(attempt)
                shown(len(attempts), f"{attempt.task} {attempt.cheat}")
    return attempts


def _show(attempts: list[Attempt], battery: tuple[Cheat, ...], counts: Counter[str]) -> None:
    from rich.markup import escape

    out = console()
    summary = table("family", "cheat", ">played", ">paid", ">infra", ">not applicable", "what it does")
    for cheat in battery:
        found = Counter(attempt.result for attempt in attempts if attempt.cheat == cheat.name)
        played = found["paid"] + found["failed"]
        paid = f"[red]{found['paid']}[/]" if found["paid"] else "0"
        infra = f"[magenta]{found['infra']}[/]" if found["infra"] else "0"
        row = [cheat.family, cheat.name, str(played), paid, infra, str(found["not applicable"])]
        summary.add_row(*row, escape(cheat.about))
    out.print(summary)
    if counts["paid"] or counts["infra"]:
        notable = table("task", "cheat", ">tries", "what")
        for attempt in attempts:
            if attempt.result == "paid":
                notable.add_row(escape(attempt.task), attempt.cheat, str(attempt.tries), "[red]paid[/]")
            elif attempt.result == "infra":
                what = f"[magenta]no verdict: {escape(attempt.note)}[/]"
                notable.add_row(escape(attempt.task), attempt.cheat, str(attempt.tries), what)
        out.print(notable)
    played = counts["paid"] + counts["failed"]
    ends = [f"{counts['paid']} of {played} cheats played paid ({counts['not applicable']} were not applicable)"]
    ends += [f"{counts['infra']} without a verdict, for failures of the sandbox or the grader"] * bool(counts["infra"])
    out.print("; ".join(ends), markup=False)
