"""What `codeenv eval` says at the end: each rollout, the totals, what was slow, what failed, where to look further."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.text import Text

from codeenv.cli.live import SHOWN_MESSAGE
from codeenv.cli.standing import grouped
from codeenv.cli.terminal import COLOURS, console, plain_line, table

if TYPE_CHECKING:
    from codeenv.cli.standing import Standing
    from codeenv.cli.vf_eval import Rollout
    from codeenv.record.schema import Summary

SLOWEST = 3
SHOWN_FAILURES = 10  # kinds of them


def show(name: str, standing: Standing, *, quiet: bool) -> None:
    """`quiet`: the line of totals alone."""
    out, rollouts, failures = console(), standing.rollouts, grouped(standing.failures)
    if not rollouts and not failures:
        return
    if rollouts and not quiet:
        _show_rollouts(name, rollouts)
    out.print(_totals(name, standing), markup=False, soft_wrap=True)
    if quiet:
        return
    if len(rollouts) > 1:
        for summary in standing.slowest[:SLOWEST]:
            out.print(Text(f"  slow: {_time(summary)} {summary.task}{_file(standing, summary.file)}"), soft_wrap=True)
    for group in failures[:SHOWN_FAILURES]:
        stage = f" ({group['stage']})" if group["stage"] else ""
        what = f"  {group['count']} x {group['outcome']}{stage}: {plain_line(group['cause'])[:SHOWN_MESSAGE]}"
        again = group["count"] - group["final"]
        what += f"; {'all' if not group['final'] else again} {_again(standing)}" if again else ""
        seen = f"; see {', '.join(group['recordings'])}" if standing.kept and group["recordings"] else ""
        out.print(Text(what + seen, style="magenta"), soft_wrap=True)
    if len(failures) > SHOWN_FAILURES:
        out.print(Text(f"  and {len(failures) - SHOWN_FAILURES} more kinds of failures", style="magenta"))
    out.print()


def _show_rollouts(name: str, rollouts: list[Rollout]) -> None:
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
    console().print(shown)


def _totals(name: str, standing: Standing) -> str:
    rollouts = standing.rollouts
    mean = f"{standing.mean_reward:.3f}" if standing.mean_reward is not None else "-"
    counted, solved = sum(rollout.counts for rollout in rollouts), sum(rollout.solved for rollout in rollouts)
    text = f"{name}: solved {solved} of {counted}, mean reward {mean}"
    apart = Counter(rollout.outcome for rollout in rollouts if not rollout.counts)
    if apart:
        text += f"; not counted: {', '.join(f'{n} {outcome}' for outcome, n in sorted(apart.items()))}"
    if standing.retries:
        text += f"; {standing.retries} {_again(standing)}"
    if standing.done < standing.total:
        text += f"; {standing.total - standing.done} of {standing.total} not done"
    return text


def _again(standing: Standing) -> str:
    return "tried again" if standing.done == standing.total else "to be tried again"


def _time(summary: Summary) -> str:
    parts = {
        "model": summary.model_seconds,
        "sandbox": summary.sandbox_seconds,
        "grading": summary.grading_seconds,
    }
    split = ", ".join(f"{name} {value:.1f}" for name, value in sorted(parts.items(), key=lambda part: -part[1]))
    return f"{summary.seconds:.1f} s ({split})"


def _file(standing: Standing, name: str) -> str:
    return f", {name}" if standing.kept else ""


def show_places(found: Mapping[str, Standing], kept: Path | None, output_dir: Path | None) -> None:
    """Where the results and the recordings are, and what looks at them."""
    out = console()
    if output_dir:
        out.print(f"results: {output_dir}", markup=False, soft_wrap=True)
    if kept and any(standing.done or standing.failures for standing in found.values()):
        folder = shlex.quote(str(kept))
        out.print(f"recordings: {kept}", markup=False, soft_wrap=True)
        if any(standing.failures for standing in found.values()):
            out.print(f"  codeenv show {folder} --outcome infra,model", markup=False, soft_wrap=True)
        out.print(f"  codeenv show {folder} --sort -seconds", markup=False, soft_wrap=True)
        out.print(f"  codeenv report {folder} -o report.html", markup=False, soft_wrap=True)


def as_json(dataset: str, found: Mapping[str, Standing], kept: Path | None, output_dir: Path | None) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "complete": all(standing.done == standing.total for standing in found.values()),
        "results": str(output_dir) if output_dir else None,
        "recordings": str(kept) if kept else None,
        "policies": [_policy(name, standing) for name, standing in found.items()],
    }


def _policy(name: str, standing: Standing) -> dict[str, Any]:
    rollouts, failures = standing.rollouts, grouped(standing.failures)
    for group in failures if not standing.kept else ():
        group["recordings"] = []
    return {
        "policy": name,
        "rollouts": standing.total,
        "done": standing.done,
        "counted": sum(rollout.counts for rollout in rollouts),
        "solved": sum(rollout.solved for rollout in rollouts),
        "mean_reward": standing.mean_reward,
        "outcomes": dict(sorted(standing.outcomes.items())),
        "retries": standing.retries,
        "failures": failures,
        "episodes": [_episode(rollout, standing) for rollout in rollouts],
    }


def _episode(rollout: Rollout, standing: Standing) -> dict[str, Any]:
    summary = standing.summary(rollout)
    return {
        "task": rollout.task,
        "outcome": rollout.outcome,
        "reward": rollout.reward,
        "solved": rollout.solved,
        "tests_passed": rollout.passed if rollout.counts else None,
        "tests_total": rollout.total if rollout.counts else None,
        "turns": rollout.turns,
        "seconds": rollout.seconds,
        "model_seconds": summary.model_seconds if summary else None,
        "sandbox_seconds": summary.sandbox_seconds if summary else None,
        "grading_seconds": summary.grading_seconds if summary else None,
        "error": rollout.error,
        "recording": summary.file if summary and standing.kept else None,
    }
