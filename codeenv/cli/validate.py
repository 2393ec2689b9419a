"""`codeenv validate`: whether tasks are sound."""

from __future__ import annotations

from collections.abc import Sequence
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
    from codeenv.sandbox.api import SandboxProvider
    from codeenv.sources import BadRow
    from codeenv.task import Task
    from codeenv.validate import TaskReport


def validate(
    dataset: Dataset,
    split: Split = "",
    filters: Filters = None,
    limit: Limit = None,
    seed: Seed = None,
    sandbox: Sandbox = "auto",
    sandbox_setting: SandboxSettings = None,
    image: Image = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Gradings at a time.")] = 2,
    runs: Annotated[int, typer.Option(min=1, help="Times that each reference must pass.")] = 3,
    record: Annotated[
        bool, typer.Option("--record", help="Write down which tests each sound task's reference passed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check tasks: the reference passes every time, the untouched workspace fails, every wrong solution fails.

    With --record, the tests that a sound task's reference passed are written beside it (`expected.json`, in a JSONL
    file its own line), and every later grading expects each of them.

    Exit code 0 when all are sound, 1 when one is not or a row is no task, 3 when the sandbox failed and no task is
    known to be bad.
    """
    import anyio

    from codeenv.sandbox import get_provider
    from codeenv.sources import locate, open_tasks
    from codeenv.sources import record as write_down

    recorded: list[str] = []
    with clear_errors(unavailable=INFRA):
        opened = open_tasks(dataset, recorded=not record, **choice_of(split, filters, limit, seed))
        tasks = list(opened)
        reports = anyio.run(_run, tasks, get_provider(sandbox, **settings_of(sandbox_setting)), image, runs, jobs)
        if record:
            recorded = write_down(locate(dataset), tasks, {report.task: report.ids for report in reports})
    reports.sort(key=lambda report: report.task)
    bad = sum(bool(report.faults) for report in reports)
    broken = sum(bool(report.errors) for report in reports)
    if as_json:
        plain = [{key: value for key, value in asdict(report).items() if key != "ids"} for report in reports]
        counts = {"tasks": len(reports), "bad": bad, "infra": broken, "runs": runs, "flaky": len(_flaky(reports))}
        rows = [asdict(row) for row in opened.bad]
        print_json({**counts, "recorded": recorded, "bad_rows": rows, "reports": plain})
    else:
        _show_rows(opened.bad)
        _show(reports, bad, broken, runs)
        if record:
            console().print(f"recorded the tests of {len(recorded)} tasks", markup=False)
    raise typer.Exit(FAILED if bad or opened.bad else INFRA if broken else OK)


async def _run(
    tasks: list[Task], provider: SandboxProvider, image: str | None, runs: int, jobs: int
) -> list[TaskReport]:
    from codeenv import validate as core
    from codeenv.sandbox.api import SandboxSpec

    reports: list[TaskReport] = []
    with progress("validating", len(tasks)) as shown:
        async with core.validate(tasks, provider, spec=SandboxSpec(image=image), runs=runs, jobs=jobs) as arriving:
            async for report in arriving:
                reports.append(report)
                shown(len(reports), report.task)
    return reports


def _flaky(reports: list[TaskReport]) -> list[TaskReport]:
    """Those whose reference passes sometimes."""
    return [report for report in reports if report.flake_rate is not None and 0 < report.flake_rate < 1]


def _show_rows(rows: Sequence[BadRow]) -> None:
    from rich.markup import escape

    if not rows:
        return
    out = console()
    shown = table("row", "named", "what")
    for row in rows:
        shown.add_row(escape(row.where), escape(row.name), f"[red]{escape(row.reason)}[/]")
    out.print(shown)
    out.print(f"{len(rows)} rows are no tasks")


def _show(reports: list[TaskReport], bad: int, broken: int, runs: int) -> None:
    from rich.markup import escape

    out = console()
    if bad or broken:
        faults = table("task", "check", "what")
        for report in reports:
            for fault in report.faults:
                faults.add_row(escape(report.task), escape(fault.check), f"[red]{escape(fault.message)}[/]")
            for fault in report.errors:
                what = f"[magenta]the sandbox failed: {escape(fault.message)}[/]"
                faults.add_row(escape(report.task), escape(fault.check), what)
        out.print(faults)
    sound = sum(report.sound for report in reports)
    gradings = sum(report.gradings for report in reports)
    ends = [f"{sound} of {len(reports)} tasks are sound ({gradings} gradings)"]
    ends += [f"{bad} bad"] if bad else []
    ends += [f"{broken} not fully checked, for failures of the sandbox"] if broken else []
    out.print("; ".join(ends), markup=False)
    for report in _flaky(reports):
        out.print(f"{report.task}: the reference failed {report.flake_rate:.0%} of {runs} runs", markup=False)
