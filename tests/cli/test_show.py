"""`codeenv show`: folders and single recordings, and that nothing of them but text reaches the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from codeenv.cli import app
from codeenv.record import Recordings
from codeenv.record.reading import glance
from tests.record.recorded import END, OPENING, START, turn, written

VERDICT: dict[str, Any] = {"outcome": "failed", "reward": 0.0, "exit_code": 1, "seconds": 1.5, "reason": "not right"}
TESTS = [{"id": f"test_{n}", "passed": n == 0, "message": "", "seconds": 0.1} for n in range(3)]
HOSTILE = "\x1b]0;title\x07\x1b[31m[bold]red[/]\x9b5m\r\nover\udc80"


def show(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["show", *map(str, arguments)])


def recorded(folder: Path, name: str, task: str = "adding", *, turns: int = 1, policy: str = "p", **end: Any) -> Path:
    opening = {**OPENING, "id": name, "task": {"id": task, "digest": "d"}, "policy": policy}
    opening["started"] = f"2026-01-02T03:04:{len(list(folder.iterdir())):02}.000+00:00"
    lines = [opening, START, *(turn(n + 1) for n in range(turns))]
    ended = [{**END, "model_seconds": 1.0, "tally": {"turns": turns}, **end}] if end else []
    return written(folder / f"{task}-{name}.jsonl", *lines, *ended)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    good = {**VERDICT, "outcome": "solved", "reward": 1.0, "tests": TESTS[:1]}
    bad = {**VERDICT, "tests": TESTS}
    fault = {"type": "SandboxLost", "stage": "exec", "message": "the box is GONE"}
    recorded(made, "a1", "adding", turns=3, outcome="solved", over="submitted", verdict=good, seconds=4.0)
    recorded(made, "b2", "books", turns=7, outcome="failed", over="submitted", verdict=bad, seconds=2.0)
    recorded(made, "c3", "books-2", policy="q", outcome="infra", error=fault, seconds=9.0)
    recorded(made, "d4", "closed", outcome=None, over="", seconds=1.0)
    recorded(made, "e5", "running", turns=2)
    return made


def test_a_folder(folder: Path) -> None:
    done = show(folder)
    assert done.exit_code == 0, done.output
    lines = [line.strip() for line in done.output.splitlines()]
    assert [line.split() for line in lines if line and line.split()[0] in ("adding", "books", "books-2", "closed")] == [
        ["adding", "p", "solved", "1", "1/1", "3", "4.0", "a1", "submitted"],
        ["books", "p", "failed", "0", "1/3", "7", "2.0", "b2", "submitted"],
        ["books-2", "q", "infra", "-", "-", "1", "9.0", "c3", "exec:", "the", "box", "is", "GONE"],
        ["closed", "p", "open", "-", "-", "1", "1.0", "d4", "closed", "before", "it", "was", "judged"],
    ]
    assert any(line.endswith("e5   no end: it still runs, or was killed") for line in lines)
    assert lines[-1].startswith("5 episodes; open 2, solved 1, failed 1, infra 1; mean reward 0.500; 2.8 turns each; ")


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ((), "a1 b2 c3 d4 e5"),
        (("--outcome", "failed,infra"), "b2 c3"),
        (("--outcome", "open"), "d4 e5"),
        (("--task", "books*"), "b2 c3"),
        (("--policy", "q"), "c3"),
        (("--min-turns", "2", "--max-turns", "3"), "a1 e5"),
        (("--min-seconds", "4"), "a1 c3"),
        (("--error", "gone"), "c3"),
        (("--sort", "-turns", "--limit", "2"), "b2 a1"),
        (("--sort", "seconds", "--limit", "0"), "d4 b2 e5 a1 c3"),
        (("--task", "nope"), ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_filters(options: tuple[str, ...], ids: str, folder: Path) -> None:
    found = json.loads(show(folder, "--json", *options).output)
    assert " ".join(row["id"] for row in found["episodes"]) == ids
    assert found["recordings"] == 5
    assert found["shown"] == len(found["episodes"])
    assert show(folder, *options).exit_code == 0


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (140, "task policy outcome reward tests turns seconds id over, error"),
        (80, "task policy outcome tests turns seconds id over, error"),
        (60, "task outcome tests seconds id over, error"),
        (45, "task outcome seconds over,"),
    ],
)
def test_a_narrow_terminal_keeps_what_says_most(
    width: int, columns: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it keeps is whole, but for long names and errors."""
    monkeypatch.setattr(sys.modules["codeenv.cli.show"], "PIPED", width)
    lines = show(folder).output.splitlines()
    table = lines[: lines.index("", 1) if "" in lines[1:] else 8]
    assert max(map(len, table[:8])) <= width
    head = table[1].split()
    assert head[: len(columns.split()) - 1] == columns.split()[:-1]
    assert "infra" in table[5].split()
    assert "9.0" in table[5].split()


def test_a_large_table_is_cut_and_says_so(folder: Path) -> None:
    for n in range(120):
        recorded(folder, f"n{n:03}", "many", outcome="failed", over="turns", verdict={**VERDICT, "tests": TESTS})
    done = show(folder)
    assert done.output.count("\n many ") == 100 - 5
    assert "shown are 100 of them; --limit 0 shows all" in done.output
    assert show(folder, "--limit", "0").output.count("\n many ") == 120
    assert len(json.loads(show(folder, "--json").output)["episodes"]) == 125


def test_what_cannot_be_read_is_named_last(folder: Path) -> None:
    written(folder / "foreign.jsonl", {"some": "rows"})
    written(folder / "newer.jsonl", {**OPENING, "format": 99})
    done = show(folder)
    assert done.exit_code == 1
    first, second = done.output.splitlines()[-2:]
    assert first.startswith(f"unreadable: {folder}/foreign.jsonl, line 1: is no line of a recording")
    assert second.startswith(f"unreadable: {folder}/newer.jsonl, line 1: has format 99")
    found = json.loads(show(folder, "--json").output)
    assert (len(found["episodes"]), sorted(found["unreadable"])) == (5, ["foreign.jsonl", "newer.jsonl"])


def test_the_index_says_what_the_files_say(folder: Path) -> None:
    without = show(folder).output
    recordings = Recordings(folder)
    for path in sorted(folder.glob("*.jsonl")):
        if glance(path).ended:
            recordings.note(glance(path))
    assert show(folder).output == without


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("{folder}", "--outcome", "won"), "--outcome: 'won' is none; valid: solved, failed"),
        (("{folder}", "--sort", "size"), "--sort: 'size' is none; valid: started, task"),
        (("{folder}", "--turn", "1"), "--turn goes with one recording"),
        (("{folder}/adding-a1.jsonl", "--task", "x"), "--task goes with a folder"),
        (("{folder}/adding-a1.jsonl", "--turn", "4"), "has 3 turns"),
        (("{folder}/nope.jsonl",), "nope.jsonl"),
        (("{folder}/..",), "there are no recordings in it"),
    ],
    ids=["outcome", "sort", "turn-of-folder", "filter-of-file", "no-such-turn", "no-such-file", "nothing-there"],
)
def test_usage(arguments: tuple[str, ...], says: str, folder: Path) -> None:
    done = show(*(argument.format(folder=folder) for argument in arguments))
    assert done.exit_code == 2, done.output
    assert says in " ".join(done.stderr.split())
    assert done.stdout == ""


# --- one recording ---------------------------------------------------------------------------------------------


def result(**fields: Any) -> dict[str, Any]:
    return {"name": "bash", "tool": "bash", "text": "fine", **fields}


@pytest.fixture
def episode(tmp_path: Path) -> Path:
    output = {"text": "x\n"}
    bash = result(arguments='{"command": "make\\ntest"}', exit_code=2, failed=True, seconds=1.25)
    bash["raw"] = {"output": output, "output_bytes": 77}
    bash["text"] = "\n".join(f"line {n}" for n in range(1, 101))
    edit = result(name="edit_file", arguments={"path": "a.py", "old_text": "x", "lines": 3})
    diff = [
        {"path": "a.py", "change": "changed", "size": 12, "diff": "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\n+y\n"},
        {"path": "b.bin", "change": "added", "size": 99, "binary": True, "mode": 0o644},
        {"path": "c", "change": "removed"},
    ]
    said = {"text": "I look.", "reasoning": "hm", "prompt_tokens": 10, "completion_tokens": 3}
    first = turn(1, said=said, results=[bash, edit], diff=diff)
    last = turn(2, results=[result(name="submit", arguments="no {json")], over="submitted")
    tests = [*TESTS[:2], {**TESTS[2], "message": "expected 1\nnot 2"}]
    end = {**END, "outcome": "failed", "over": "submitted", "verdict": {**VERDICT, "tests": tests}}
    return written(tmp_path / "adding-x.jsonl", OPENING, START, first, last, end)


def test_an_episode(episode: Path) -> None:
    done = show(episode)
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    lines = [line.strip() for line in done.output.splitlines()]
    assert lines[0].startswith("adding  failed, reward 0, 1 of 3 tests, 2 turns, 9.0 s (model 0.5, ")
    assert lines[2].startswith("turn 1: 0.5 s, model 0.2 s, 10 + 3 tokens ──")
    assert lines[3:9] == ["hm", "I look.", "> bash", "$ make", "test", "exit code 2, 1.2 s, 77 bytes"]
    assert "line 8\n[84 more lines]\nline 93\n" in done.output
    assert "\n> edit_file\npath: a.py\nold_text: x\nlines: 3\nfine\nchanged a.py, 12 bytes\n--- a.py\n" in done.output
    assert "\n-x\n+y\nadded b.bin, 99 bytes, binary, mode 644\nremoved c\nturn 2" in done.output
    assert "\n> submit\narguments: no {json\n" in done.output
    assert lines[-4:] == [
        "failed: reward 0, 1 of 3 tests, exit code 1, 1.5 s; not right",
        "failed test_1",
        "failed test_2: expected 1 not 2",
        "over: submitted",
    ]


def test_one_turn_is_whole(episode: Path) -> None:
    output = show(episode, "--turn", "1").output
    assert "\nline 50\n" in output
    assert "more lines" not in output
    assert "turn 2" not in output
    assert json.loads(show(episode, "--turn", "1", "--json").output)["turn"] == 1


def test_json_has_it_all(episode: Path) -> None:
    found = json.loads(show(episode, "--json").output)
    assert [one["turn"] for one in found["turns"]] == [1, 2]
    assert (found["opening"]["id"], found["end"]["verdict"]["exit_code"], found["cut"]) == ("abc", 1, "")
    assert (found["workspace"], found["summary"]["tests_total"]) == (None, 3)


@pytest.mark.parametrize(("more", "says"), [("", "it has no end"), ('{"kind": "tur', "line 4: cut off after 13 bytes")])
def test_a_part_of_one(more: str, says: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", OPENING, START, turn(1))
    with path.open("a") as file:
        file.write(more)
    done = show(path)
    assert done.exit_code == 0
    assert says in done.output
    assert "turn 1: " in done.output


def test_no_control_code_gets_through(tmp_path: Path) -> None:
    """Whatever part of a recording it is in."""
    change = {"path": HOSTILE, "change": "changed", "size": 1, "diff": f"+{HOSTILE}\n", "target": HOSTILE}
    bash = result(name=HOSTILE, arguments={HOSTILE: HOSTILE}, text=HOSTILE)
    hostile = turn(1, said={"text": HOSTILE, "reasoning": HOSTILE}, results=[bash], diff=[change], diff_note=HOSTILE)
    tests = [{"id": HOSTILE, "passed": False, "message": HOSTILE, "seconds": 0.1}]
    fault = {"type": HOSTILE, "stage": HOSTILE, "message": HOSTILE}
    opening = {**OPENING, "id": HOSTILE, "policy": HOSTILE, "sandbox": HOSTILE, "versions": {HOSTILE: HOSTILE}}
    opening |= {"task": {"id": HOSTILE, "digest": "d"}, "started": HOSTILE, "fork": {"id": HOSTILE, "turn": 1}}
    end = {**END, "outcome": "infra", "over": HOSTILE, "error": fault}
    end["verdict"] = {**VERDICT, "tests": tests, "reason": HOSTILE}
    path = written(tmp_path / "a.jsonl", opening, START, hostile, end)
    written(tmp_path / "b.jsonl", {"kind": HOSTILE})
    for arguments in ((path,), (path, "--turn", "1"), (tmp_path,)):
        output = show(*arguments).output
        assert "red" in output
        assert "[bold]" in output
        assert not {*output} & {"\x1b", "\x07", "\x9b", "\r", "\udc80"}, arguments
    assert json.loads(show(path, "--json").output)["opening"]["id"] == HOSTILE
