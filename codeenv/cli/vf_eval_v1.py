"""What `vf-eval` of verifiers 0.4 is asked, and what it saves: the other face's way of `codeenv.cli.vf_eval`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeenv.sources import splits_of
from codeenv.sources.choice import Choice

if TYPE_CHECKING:
    from codeenv.cli.vf_eval import Endpoint, Run

COMMAND = (sys.executable, "-P", "-c", "from verifiers.v1.cli.eval.main import main; main()")
SAVED = "*/traces.jsonl"


def command(run: Run, endpoint: Endpoint) -> list[str]:
    """With a file, below the run's folder, that says everything."""
    client = {"base_url": endpoint.base_url, "api_key_var": endpoint.api_key_var}
    rules = [{"type": "SandboxError", "max_retries": run.max_retries}]
    config = {
        "env": {"taskset": {"id": "codeenv", **_taskset(run.arguments, run.output_dir)}, "retries": {"rules": rules}},
        "model": endpoint.model,
        "client": {name: value for name, value in client.items() if value},
        "sampling": dict(run.sampling),
        "select": {"limit": run.examples},
        "num_rollouts": run.rollouts,
        "max_concurrent": run.concurrent,
        "push": False,
        "rich": None,
        "output_dir": str(run.output_dir.absolute()),
    }
    path = run.output_dir / "vf-eval.json"
    path.write_text(json.dumps(config))
    return [*COMMAND, "@", str(path.absolute())]


def _taskset(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """`load_environment`'s arguments as the taskset's, of the tasks that an evaluation is over."""
    own = dict(given)
    other, split = own.pop("eval_dataset", None), own.pop("eval_split", "")
    dataset = own.get("dataset")
    if other is not None:
        own = {name: value for name, value in own.items() if name not in Choice.model_fields}
        own |= {"dataset": other, "split": split}
    elif split or (
        not own.get("split") and own.get("tasks") is None and isinstance(dataset, str) and len(splits_of(dataset)) > 1
    ):
        own["split"] = split or "eval"
        own.pop("decontaminate", None)
    if own.get("system_prompt") is not None:
        path = folder / "system_prompt.txt"
        path.write_text(own["system_prompt"])
        own["system_prompt"] = str(path.absolute())
    return own


def _part(whole: Mapping[str, Any], name: str) -> dict[str, Any]:
    return whole.get(name) or {}


def rollout(episode: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a `Rollout`."""
    traces: list[dict[str, Any]] = episode.get("traces") or [{}]
    trace, ok = traces[-1], bool(episode.get("ok"))
    data = _part(_part(trace, "task") or _part(episode, "task"), "data")
    ended, timing = _part(_part(trace, "info"), "codeenv"), _part(trace, "timing")
    verdict = _part(ended, "verdict")
    outcome = str(ended.get("outcome") or "infra")
    if not ok and outcome != "model":
        outcome = "infra"  # also where the framework let go of it after it was judged
    scores: list[dict[str, Any]] = [reward for reward in _part(trace, "rewards").values() if reward]
    ends = [float(_part(timing, stage).get("end") or 0.0) for stage in timing if stage != "start"]
    errors: list[dict[str, Any]] = [*(episode.get("errors") or []), *(trace.get("errors") or [])]
    return {
        "task": str(data.get("id") or f"example {data.get('idx')}"),
        "outcome": outcome,
        "reward": sum(each["score"] * each["weight"] for each in scores) if ok else None,
        "solved": ok and verdict.get("reward") == 1.0,
        "passed": verdict.get("tests_passed"),
        "total": verdict.get("tests_total"),
        "turns": int(_part(ended, "tally").get("turns") or 0),
        "seconds": max(0.0, *ends) - float(timing["start"]) if ends else 0.0,
        "error": "" if ok or not errors else " ".join(str(errors[-1]["message"]).split()),
        "example": int(data.get("idx") or 0),
        "trajectory": str(trace.get("id") or ""),
    }
