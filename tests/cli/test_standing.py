"""Where an evaluation stands, from recordings and results that come in one after the other."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from codeenv.cli import eval_summary
from codeenv.cli.standing import Standing, grouped
from codeenv.cli.vf_eval import Rollout
from codeenv.record.following import Following
from tests.record.recorded import END, OPENING, START, turn, written

PASSED: dict[str, Any] = {"outcome": "solved", "reward": 1.0, "exit_code": 0, "tests": [], "seconds": 1.0}
ENDED = {**END, "model_seconds": 1.0, "tally": {"turns": 1}}
SOLVED = {**ENDED, "outcome": "solved", "verdict": PASSED}


def fault(message: str, outcome: str = "infra", stage: str = "create", kind: str = "SandboxError") -> dict[str, Any]:
    return {**ENDED, "outcome": outcome, "error": {"type": kind, "stage": stage, "message": message}}


def recorded(folder: Path, name: str, *lines: dict[str, Any], example: int = 0) -> Path:
    opening = {**OPENING, "id": name, "task": {"id": f"task-{example}", "digest": "d"}, "policy": "p"}
    labels = {"example_id": example, "trajectory_id": name}
    return written(folder / f"{name}.jsonl", {**opening, "labels": labels}, *lines)


def saved(name: str, outcome: str, reward: float | None, *, example: int = 0, error: str = "") -> Rollout:
    return Rollout(f"task-{example}", outcome, reward, reward == 1.0, 1, 1, 1, 2.0, error, example, name)


@pytest.fixture
def standing(tmp_path: Path) -> Standing:
    return Standing("set, p", 4, 2, Following(tmp_path, "p"))


def test_the_results_have_the_last_word(standing: Standing, tmp_path: Path) -> None:
    """What has ended by its recording counts at once; the results then say what it is worth, and are counted once."""
    recorded(tmp_path, "a", START, turn(1), SOLVED)
    recorded(tmp_path, "b", START, turn(1), example=1)
    assert standing.read([]) == []
    assert (standing.done, dict(standing.outcomes), standing.mean_reward) == (1, {"solved": 1}, 1.0)
    assert ([one.task for one in standing.running], standing.boxes) == (["task-1"], 1)
    standing.read([saved("a", "solved", 1.5)])
    assert (standing.done, standing.mean_reward) == (1, 1.5)
    standing.read([saved("not recorded", "failed", 0.0, example=2)])
    assert (standing.done, standing.mean_reward) == (2, 0.75)
    assert [rollout.task for rollout in standing.rollouts] == ["task-0", "task-2"]
    assert [standing.summary(rollout) is not None for rollout in standing.rollouts] == [True, False]


def test_an_attempt_that_was_tried_again(standing: Standing, tmp_path: Path) -> None:
    recorded(tmp_path, "a1", fault("no room after 3.1 s"))
    (failure,) = standing.read([])
    assert str(failure) == "infra (create): no room after 3.1 s"
    assert (standing.done, standing.retries) == (0, 1)
    recorded(tmp_path, "a2", fault("no room after 4.9 s"))
    recorded(tmp_path, "b", START, turn(1), SOLVED, example=1)
    assert len(standing.read([saved("a2", "infra", None, error="create after 5 s: no room")])) == 1
    standing.read([saved("b", "solved", 1.0, example=1)])
    assert (standing.done, standing.retries, dict(standing.outcomes)) == (2, 1, {"infra": 1, "solved": 1})
    assert standing.mean_reward == 1.0
    (group,) = grouped(standing.failures)
    assert group == {
        "outcome": "infra", "stage": "create", "cause": "no room after 3.1 s", "count": 2, "final": 1,
        "recordings": ["a1.jsonl", "a2.jsonl"],
    }  # fmt: skip


def test_what_only_the_results_know(standing: Standing, tmp_path: Path) -> None:
    """Of a model's error the recording has no message, of a row that is no task there is none."""
    recorded(tmp_path, "a", START, fault("", "model", "", "ModelError"))
    assert standing.read([]) == []
    rollouts = [saved("a", "model", None, error="the endpoint is down"), saved("", "infra", None, error="no such task")]
    told = ["model: the endpoint is down", "infra: no such task"]
    assert [str(failure) for failure in standing.read(rollouts)] == told
    assert [str(failure) for failure in standing.failures] == told
    assert standing.retries == 0


def test_the_summary(standing: Standing, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path, "a", START, turn(1), {**SOLVED, "seconds": 7.0, "tally": {"turns": 1, "grade_seconds": 5.0}})
    recorded(tmp_path, "b1", fault("no room after 1 s"), example=1)
    recorded(tmp_path, "b2", fault("no room after 2 s"), example=1)
    standing.read([saved("b2", "infra", None, example=1), saved("", "model", None, example=2, error="\x1b[31mdown")])
    eval_summary.show("p", standing, quiet=True)
    totals = "p: solved 1 of 1, mean reward 1.000; not counted: 1 infra, 1 model; 1 to be tried again; 1 of 4 not done"
    assert capsys.readouterr().out == totals + "\n"
    eval_summary.show("p", standing, quiet=False)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line.split() for line in lines if line.startswith(" task-")] == [
        ["task-0", "solved", "0/0", "1", "7.0"],
        ["task-1", "infra", "-", "-", "2.0"],
        ["task-2", "model", "-", "-", "2.0"],
    ]
    assert (
        lines[lines.index(totals) + 1 :]
        == [
            "  slow: 9.0 s (model 1.0, sandbox 0.0, grading 0.0) task-1, b2.jsonl",
            "  slow: 7.0 s (grading 5.0, model 1.0, sandbox 0.0) task-0, a.jsonl",
            "  2 x infra (create): no room after 1 s; 1 to be tried again; see b1.jsonl, b2.jsonl",
            "  1 x model: down",
            "",
        ]
        or lines
    )
    eval_summary.show_places({"p": standing}, tmp_path / "a b", None)
    assert f"  codeenv show '{tmp_path}/a b' --outcome infra,model\n" in capsys.readouterr().out


def test_one_that_was_closed_is_no_failure(standing: Standing, tmp_path: Path) -> None:
    recorded(tmp_path, "a", START, turn(1), ENDED)
    assert (standing.read([]), standing.failures, standing.done) == ([], [], 0)


def test_what_nobody_wants_to_keep_goes_when_it_has_ended(tmp_path: Path) -> None:
    standing = Standing("set, p", 4, 2, Following(tmp_path, "p"), kept=False)
    recorded(tmp_path, "a", START, turn(1), SOLVED)
    recorded(tmp_path, "b", fault("no room"), example=1)
    recorded(tmp_path, "c", START, turn(1), example=2)
    standing.read([])
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]
    assert len(standing.slowest) == 1


def test_the_time_that_is_left(standing: Standing, tmp_path: Path) -> None:
    assert standing.seconds_left is None
    recorded(tmp_path, "0", fault("no room"))
    standing.read([])
    assert standing.seconds_left is None  # how soon one fails says nothing
    recorded(tmp_path, "a", START, turn(1), {**SOLVED, "seconds": 100.0})
    standing.read([])
    assert standing.seconds_left == pytest.approx(3 * 100 / 2)
    path = recorded(tmp_path, "b", START)
    began = json.loads(path.read_text().splitlines()[0])["started"]
    path.write_text(path.read_text().replace(began, time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())))
    standing.read([])
    assert 250 / 2 < (standing.seconds_left or 0) <= 300 / 2
    recorded(tmp_path, "c", START, turn(1), SOLVED)
    recorded(tmp_path, "d", START, turn(1), SOLVED)
    recorded(tmp_path, "e", START, turn(1), SOLVED)
    standing.read([])
    assert standing.seconds_left is None
