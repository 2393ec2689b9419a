"""`codeenv validate`: whether tasks are sound, and how much their tests see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from codeenv.report_file import ReportFile
    from codeenv.sandbox.api import SandboxProvider
    from codeenv.sources import BadRow
    from codeenv.task import Task
    from codeenv.validate import TaskReport

MUTANTS = 5
"""For each task of a public set, whose authors give no wrong solutions."""
SHOWN = 20  # tasks with mutants that survived


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
    mutants: Annotated[
        int | None,
        typer.Option(min=0, show_default=False, help="Mutants of each reference; 5 for public sets, else none."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write what is found here, and go on from there; a list of allowed tasks for training."),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write down which tests each sound task's reference passed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check tasks: the reference passes every time, the untouched workspace fails, every wrong solution fails.

    Mutants are the reference with a small mistake in each; how many fail says how much the tests see.

    With --report, what is found of each task is written as it is found; called again, the command passes over tasks
    that are the same and were checked in the same way.

    With --record, the tests that a sound task's reference passed are written beside it (`expected.json`, in a JSONL
    file its own line), and every later grading expects each of them.

    Exit code 0 when all are sound, 1 when one is not or a row is no task, 3 when the sandbox failed and no task is
    known to be bad.
    """
    import anyio

    from codeenv.report_file import ReportFile, entry_of
    from codeenv.sandbox import get_provider
    from codeenv.sources import locate, open_tasks
    from codeenv.sources import record as write_down
    from codeenv.sources.public import public_set

    recorded: list[str] = []
    with clear_errors(unavailable=INFRA):
        is_public = public_set(dataset) is not None
        if record and (report or is_public):
            raise ValueError("--record: not with --report, which does not have the ids, nor for a public set")
        count = (MUTANTS if is_public else 0) if mutants is None else mutants
        opened = open_tasks(dataset, recorded=not record, **choice_of(split, filters, limit, seed))
        tasks = list(opened)
        backend = settings_of(sandbox_setting)
        how = {"runs": runs, "mutants": count, "sandbox": sandbox, "sandbox_settings": backend, "image": image}
        file = ReportFile(report, dataset, how) if report else None
        work = _Work(tasks, get_provider(sandbox, **backend), image, runs, jobs, count, file)
        reports = anyio.run(work.run)
        if record:
            recorded = write_down(locate(dataset), tasks, {report.task: report.ids for report in reports})
    reports.sort(key=lambda report: report.task)
    bad = sum(bool(report.faults) for report in reports)
    broken = sum(bool(report.errors) for report in reports)
    if as_json:
        counts = {"tasks": len(reports), "bad": bad, "infra": broken, "runs": runs, "flaky": len(_flaky(reports))}
        sums: dict[str, Any] = {name: sum(getattr(one, name) for one in reports) for name in ("mutants", "killed")}
        rows = [asdict(row) for row in opened.bad]
        rest = {"recorded": recorded, "bad_rows": rows, "reports": [entry_of(report) for report in reports]}
        print_json({**counts, **sums, **rest})
    else:
        _show_rows(opened.bad)
        _show(reports, bad, broken, runs)
        if record:
            console().print(f"recorded the tests of {len(recorded)} tasks", markup=False)
    raise typer.Exit(FAILED if bad or opened.bad else INFRA if broken else OK)


@dataclass
class _Work:
    tasks: list[Task]
    provider: SandboxProvider
    image: str | None
    runs: int
    jobs: int
    mutants: int
    file: ReportFile | None

    async def run(self) -> list[TaskReport]:
        from codeenv import validate as core
        from codeenv.sandbox.api import SandboxSpec

        known = self.file.known(self.tasks) if self.file else {}
        left = [task for task in self.tasks if task.id not in known]
        reports = list(known.values())
        spec = SandboxSpec(image=self.image)
        try:
            with progress("validating", len(self.tasks)) as shown:
                shown(len(reports))
                async with core.validate(
                    left, self.provider, spec=spec, runs=self.runs, jobs=self.jobs, mutants=self.mutants
                ) as arriving:
                    async for report in arriving:
                        reports.append(report)
                        if self.file:
                            self.file.add(report)
                        shown(len(reports), report.task)
        finally:
            if self.file:
                self.file.write()
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
    from collections import Counter

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
    if made := sum(report.mutants for report in reports):
        weak = sorted((one for one in reports if one.survived), key=lambda one: (-len(one.survived), one.task))
        if weak:
            passing = table("task", ">killed", "mutants that pass all tests")
            for report in weak[:SHOWN]:
                names = ", ".join(escape(name) for name in report.survived)
                passing.add_row(escape(report.task), f"{report.killed} of {report.mutants}", names)
            out.print(passing)
        graders = Counter(report.grader for report in reports).most_common()
        out.print("graders: " + ", ".join(f"{kind} {count}" for kind, count in graders), markup=False)
        killed = sum(report.killed for report in reports)
        more = f"; {len(weak)} tasks have some that pass" if weak else ""
        out.print(f"mutants: {killed} of {made} fail ({killed / made:.1%}){more}", markup=False)
    sound = sum(report.sound for report in reports)
    gradings = sum(report.gradings for report in reports)
    ends = [f"{sound} of {len(reports)} tasks are sound ({gradings} gradings)"]
    ends += [f"{bad} bad"] if bad else []
    ends += [f"{broken} not fully checked, for failures of the sandbox"] if broken else []
    out.print("; ".join(ends), markup=False)
    for report in _flaky(reports):
        out.print(f"{report.task}: the reference failed {report.flake_rate:.0%} of {runs} runs", markup=False)
