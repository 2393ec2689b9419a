"""The command line's options that choose tasks."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import provider_or_skip
from env_support import double_task, write_set
from typer.testing import CliRunner

from codeenv.cli import app
from codeenv.cli.eval import _tasks  # what its policies are started with
from codeenv.cli.options import choice_of
from codeenv.load import load_environment

LEVELS = {0: "easy", 1: "hard", 2: "easy", 3: "medium"}


@pytest.fixture
def own(tmp_path: Path) -> str:
    tasks = [double_task(n, metadata={"level": level, "n": n}, wrong={}) for n, level in LEVELS.items()]
    return str(write_set(tmp_path, tasks))


def run(*arguments: str) -> Any:
    provider_or_skip("bubblewrap")
    return CliRunner().invoke(app, [*arguments])


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["a=b"], {"a": {"in": ["b"]}}),
        (["a=b, 2,true"], {"a": {"in": ["b", 2, True]}}),
        (["date>=2024-08-01", "date<2025-01-01", "n != 3"], {"date": {">=": "2024-08-01", "<": "2025-01-01"}, "n": {"!=": 3}}),
        (["a=x=y"], {"a": {"in": ["x=y"]}}),
        (["n<=2.5", "m>1", 'k=="x, y"'], {"n": {"<=": 2.5}, "m": {">": 1}, "k": {"==": "x, y"}}),
    ],
    ids=str,
)  # fmt: skip
def test_filters(texts: list[str], wanted: dict[str, Any]) -> None:
    assert choice_of("", texts, None, None) == {"filter": wanted}


def test_only_what_was_given() -> None:
    assert choice_of("", None, None, None) == {}
    assert choice_of("eval", None, 3, 0) == {"split": "eval", "limit": 3, "seed": 0}
    with pytest.raises(ValueError, match=r"--filter: must be KEY=VALUE, .*, not 'easy'"):
        choice_of("", ["easy"], None, None)


def test_validate_a_choice(own: str) -> None:
    done = run("validate", own, "--filter", "level=easy,medium", "--limit", "2", "--runs", "1", "--json")
    assert done.exit_code == 0, done.output
    assert [report["task"] for report in json.loads(done.stdout)["reports"]] == ["double-0", "double-2"]
    done = run("validate", own, "--filter", "difficulty=easy")
    assert done.exit_code == 2
    assert (
        "filter: no task has 'difficulty'; they have: level (easy, hard, medium...); n (0, 1, 2, 3...)" in done.stderr
    )


def test_validate_shows_bad_rows(tmp_path: Path) -> None:
    row = {
        "task_id": "a/1", "prompt": "def one():\n    '''One.'''\n", "entry_point": "one", "canonical_solution": "    return 1\n",
        "test": "def check(candidate):\n    assert candidate() == 1\n",
    }  # fmt: skip
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, (row, {**row, "task_id": "a/2", "test": ""}))))
    done = run("validate", f"humaneval:{path}", "--runs", "1")
    assert done.exit_code == 1, done.output
    assert [line.split() for line in done.stdout.splitlines() if "a/2" in line] == [
        [f"{path}:2", "a/2", "test:", "is", "empty"]
    ]
    assert "1 rows are no tasks" in done.stdout
    done = run("validate", f"humaneval:{path}", "--runs", "1", "--json")
    (found,) = json.loads(done.stdout)["bad_rows"]
    assert found == {"place": 1, "where": f"{path}:2", "name": "a/2", "reasons": ["test: is empty"]}


def test_the_policies_of_eval_know_what_is_evaluated(own: str, tmp_path: Path) -> None:
    (tmp_path / "held").mkdir()
    held_out = str(write_set(tmp_path / "held", [double_task(7), double_task(8)]))
    choice = choice_of("", ["n>=1"], 2, 3)
    cases: list[dict[str, Any]] = [
        choice,
        {**choice, "eval_dataset": {"dataset": held_out, "limit": 1}},
        {"dataset": {held_out: 1, own: 1}, "limit": 3},
        {"tasks": ["double-2", "double-0"]},
    ]
    for arguments in cases:
        env = load_environment(**{"dataset": own, "sandbox": "bubblewrap", **arguments})
        evaluated = [json.loads(info)["task_id"] for info in env.get_eval_dataset()["info"]]
        assert [task.id for task in _tasks(own, arguments)] == evaluated


def test_audit_a_choice(own: str) -> None:
    done = run("audit", own, "--limit", "1", "--filter", "level=hard", "--cheats", "exit_at_import", "--json")
    assert done.exit_code == 0, done.output
    assert [attempt["task"] for attempt in json.loads(done.stdout)["attempts"]] == ["double-1"]


def test_the_sets_that_there_are() -> None:
    done = CliRunner().invoke(app, ["datasets"])
    assert "shipped: starter" in done.stdout
    assert ["humaneval", "a", "package,", "else"] in [line.split()[:4] for line in done.stdout.splitlines()]
    found = json.loads(CliRunner().invoke(app, ["datasets", "--json"]).stdout)
    assert found["shipped"] == ["starter"]
    assert "humaneval" in [entry["name"] for entry in found["public"]]
