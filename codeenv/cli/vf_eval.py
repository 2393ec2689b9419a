"""Runs the real `vf-eval` in a process of its own and reads what it saved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

POLL_SECONDS = 0.25
LAST_LINES = 25
STATE_COLUMNS = "outcome,verdict,task_id"

# As the script `vf-eval` does it, by this very Python; -P: the working directory is not a place to import from.
COMMAND = (sys.executable, "-P", "-c", "from verifiers.scripts.eval import main; main()", "codeenv")


class EvalFailed(Exception):
    """vf-eval ended without results; the message holds the last lines that it printed."""


@dataclass(frozen=True)
class Endpoint:
    """Where the policy answers. None: as vf-eval has it by default. `environment` goes to vf-eval's process alone."""

    model: str
    base_url: str | None = None
    api_key_var: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Rollout:
    """One saved rollout. `reward` is None where there is none (outcomes `infra` and `model`). `seconds` is wall
    time."""

    task: str
    outcome: str
    reward: float | None
    solved: bool
    passed: int | None
    total: int | None
    turns: int
    seconds: float
    error: str

    @property
    def counts(self) -> bool:
        return self.reward is not None


@dataclass(frozen=True)
class Run:
    """An evaluation, to be made of one endpoint or of several in turn. `arguments` are `load_environment`'s. Nothing is
    uploaded; results stay below `output_dir`."""

    arguments: Mapping[str, Any]
    examples: int
    rollouts: int
    concurrent: int
    output_dir: Path
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    max_retries: int = 3
    """Of a rollout that ended in a failure of the sandbox."""
    verbose: bool = False

    def __call__(self, endpoint: Endpoint, on_progress: Callable[[int], None] = lambda done: None) -> list[Rollout]:
        """Evaluate and read the rollouts, in order of task. Blocks; `on_progress` hears how many rollouts are saved.

        :raises EvalFailed: vf-eval failed, or left nothing.
        """
        self.output_dir.mkdir(parents=True, exist_ok=True)
        before = _results(self.output_dir)
        log = self.output_dir / "vf-eval.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                self._command(endpoint),
                stdin=subprocess.DEVNULL,
                stdout=2 if self.verbose else sink,
                stderr=2 if self.verbose else sink,
                env={**os.environ, **endpoint.environment},
            )
            try:
                while process.poll() is None:
                    on_progress(sum(map(_count, _results(self.output_dir) - before)))
                    time.sleep(POLL_SECONDS)
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
        saved = sorted(_results(self.output_dir) - before)
        if process.returncode != 0 or not saved:
            lines = log.read_text(errors="replace").rstrip().splitlines()[-LAST_LINES:]
            raise EvalFailed("\n".join([f"vf-eval failed (exit code {process.returncode})", *lines]))
        rows: list[dict[str, Any]] = [json.loads(row) for row in saved[-1].read_text().split("\n") if row.strip()]
        return [_rollout(row) for row in sorted(rows, key=lambda row: row["example_id"])]

    def _command(self, endpoint: Endpoint) -> list[str]:
        command = [*COMMAND, "-m", endpoint.model, "-a", json.dumps(self.arguments), "-o", str(self.output_dir)]
        command += ["-n", str(self.examples), "-r", str(self.rollouts), "-c", str(self.concurrent)]
        # -d: no display of its own. One process: servers for the environment would only start more slowly.
        command += ["--max-retries", str(self.max_retries)]
        command += ["-s", "-d", "-A", "--disable-env-server", "-C", STATE_COLUMNS]
        command += ["-b", endpoint.base_url] if endpoint.base_url else []
        command += ["-k", endpoint.api_key_var] if endpoint.api_key_var else []
        return command + (["-S", json.dumps(self.sampling)] if self.sampling else [])


def _results(folder: Path) -> set[Path]:
    return set(folder.glob("evals/*/*/results.jsonl"))


def _count(results: Path) -> int:
    return results.read_bytes().count(b"\n")


def _rollout(row: Mapping[str, Any]) -> Rollout:
    verdict: dict[str, Any] = row.get("verdict") or {}
    metrics: dict[str, Any] = row.get("metrics") or {}
    timing: dict[str, Any] = row.get("timing") or {}
    outcome = str(row.get("outcome") or "infra")
    return Rollout(
        task=str(row.get("task_id") or f"example {row['example_id']}"),
        outcome=outcome,
        reward=None if outcome in ("infra", "model") else float(row.get("reward") or 0.0),
        solved=verdict.get("reward") == 1.0,
        passed=verdict.get("tests_passed"),
        total=verdict.get("tests_total"),
        turns=int(metrics.get("turns") or 0),
        seconds=float(timing.get("total") or 0.0),
        error=_message(row.get("error")),
    )


def _message(error: Any) -> str:
    """What a saved error says. Its own message may be no more than its name; the cause is then in its chain."""
    if isinstance(error, Mapping):
        found = cast(Mapping[str, Any], error)
        message = found.get("message")
        error = found.get("error_chain_repr") if message in (None, "", found.get("error")) else message
    return " ".join(str(error or "").split())
