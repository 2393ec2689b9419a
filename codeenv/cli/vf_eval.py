"""Runs the real `vf-eval` in a process of its own and reads what it saved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import codeenv
from codeenv.cli import vf_eval_v1 as v1

POLL_SECONDS = 0.25
LAST_LINES = 25
END_SECONDS = 30.0
"""For vf-eval to close its boxes when it is asked to end."""
STATE_COLUMNS = "outcome,verdict,task_id,trajectory_id"

# As the script `vf-eval` does it, by this very Python; -P: the working directory is not a place to import from.
COMMAND = (sys.executable, "-P", "-c", "from verifiers.scripts.eval import main; main()", "codeenv")
SAVED = "evals/*/*/results.jsonl"


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
    time, `trajectory` verifiers' name for it."""

    task: str
    outcome: str
    reward: float | None
    solved: bool
    passed: int | None
    total: int | None
    turns: int
    seconds: float
    error: str
    example: int = 0
    trajectory: str = ""

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

    @property
    def total(self) -> int:
        return self.examples * self.rollouts

    @contextmanager
    def started(self, endpoint: Endpoint) -> Generator[Going]:
        """vf-eval at work. It does not outlive the block: it is asked to end, which closes its boxes, and killed where
        it does not, or where another interrupt comes."""
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
                process_group=0,  # a terminal's interrupt is for us, and it gets one signal from us
            )
            try:
                yield Going(self.output_dir, process, log, before)
            finally:
                _end(process)

    def _command(self, endpoint: Endpoint) -> list[str]:
        if _is_v1():
            return v1.command(self, endpoint)
        command = [*COMMAND, "-m", endpoint.model, "-a", json.dumps(self.arguments), "-o", str(self.output_dir)]
        command += ["-n", str(self.examples), "-r", str(self.rollouts), "-c", str(self.concurrent)]
        # -d: no display of its own. One process: servers for the environment would only start more slowly.
        command += ["--max-retries", str(self.max_retries)]
        command += ["-s", "-d", "-A", "--disable-env-server", "-C", STATE_COLUMNS]
        command += ["-b", endpoint.base_url] if endpoint.base_url else []
        command += ["-k", endpoint.api_key_var] if endpoint.api_key_var else []
        return command + (["-S", json.dumps(self.sampling)] if self.sampling else [])


class Going:
    """One vf-eval: whether it runs, and what it has saved."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], log: Path, before: set[Path]) -> None:
        self.saved: list[Rollout] = []
        """In the order of their ends, as far as `read` has read."""
        self._folder, self._process, self._log, self._before = folder, process, log, before
        self._path: Path | None = None
        self._at = 0

    def runs(self) -> bool:
        """Whether it does, after a moment's wait for its end."""
        try:
            self._process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            return True
        return False

    def read(self) -> list[Rollout]:
        """Those that were saved since the last time."""
        found: list[Rollout] = []
        if self._path is None:
            self._path = max(_results(self._folder) - self._before, default=None)
        if self._path is not None:
            with self._path.open("rb") as file:
                file.seek(self._at)
                for raw in file:
                    if not raw.endswith(b"\n"):
                        break  # it is being written
                    self._at += len(raw)
                    if raw.strip():
                        found.append(_rollout(json.loads(raw)))
        self.saved += found
        return found

    def check(self) -> None:
        """:raises EvalFailed: it has ended, and in failure, or without results."""
        if self._process.returncode != 0 or not self.saved:
            lines = self._log.read_text(errors="replace").rstrip().splitlines()[-LAST_LINES:]
            raise EvalFailed("\n".join([f"vf-eval failed (exit code {self._process.returncode})", *lines]))


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _is_v1() -> bool:
    """Whether the installed vf-eval knows `CodeTaskset` alone."""
    return "load_environment" not in codeenv.__all__


def _results(folder: Path) -> set[Path]:
    return set(folder.glob(v1.SAVED if _is_v1() else SAVED))


def _rollout(row: Mapping[str, Any]) -> Rollout:
    if _is_v1():
        return Rollout(**v1.rollout(row))
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
        example=row["example_id"],
        trajectory=str(row.get("trajectory_id") or ""),
    )


def _message(error: Any) -> str:
    """What a saved error says. Its own message may be no more than its name; the cause is then in its chain."""
    if isinstance(error, Mapping):
        found = cast(Mapping[str, Any], error)
        message = found.get("message")
        error = found.get("error_chain_repr") if message in (None, "", found.get("error")) else message
    return " ".join(str(error or "").split())
