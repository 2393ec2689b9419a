"""What goes into a report, and what is said of what does not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from codeenv.cli import app
from codeenv.record import Recording, Summary
from codeenv.report import LIMIT, write_report
from codeenv.report.episode import section
from codeenv.report.figures import Histogram, histogram, overview_of, parts, split
from codeenv.report.writing import FRAME, ROW_SIZE
from codeenv.sandbox.api import SandboxProvider
from tests.episodes import playing
from tests.record.recorded import END, OPENING, START, turn, written
from tests.report.pages import HOSTILE, bash, ended, episode, hostile, opening


def run(*arguments: object) -> tuple[int, str]:
    """Exit code, and all that was printed as one line."""
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, " ".join(done.output.split())


def timelines(page: Path) -> list[str]:
    """The tasks whose turns are in it."""
    return re.findall(r'<section class="episode" id="e\d+">\n.*?<b>(.*?)</b>', page.read_text(), re.DOTALL)


def rows(page: Path) -> list[str]:
    return re.findall(r"<tr data-outcome.*?>(task-[\w-]+)<", page.read_text(), re.DOTALL)


def test_a_folder(tmp_path: Path) -> None:
    episode(tmp_path, "good", "solved", passed=4)
    episode(tmp_path, "bad", turns=2)
    (tmp_path / "foreign.jsonl").write_text('{"prompt": []}\n')
    out = tmp_path / "out.html"
    code, said = run(tmp_path, "-o", out)
    assert (code, said.count("left out: ")) == (0, 1)
    assert "foreign.jsonl, line 1: is no line of a recording" in said
    assert f"{out}: 2 episodes, " in said
    assert (rows(out), timelines(out)) == (["task-bad", "task-good"], ["task-bad", "task-good"])
    page = out.read_text()
    assert "1 file could not be read" in page
    for shown in ("Now step 2 of bad.", "python step1.py", "line 29 of 2", "test_adding.py::", "+is 2", "secretly 1"):
        assert shown in page
    code, said = run(tmp_path, "-o", out, "--json")
    found = json.loads(said)
    assert (found["episodes"], found["timelines"], list(found["unreadable"])) == (2, 2, ["foreign.jsonl"])
    assert found["bytes"] == out.stat().st_size


def test_one_file(tmp_path: Path) -> None:
    file = episode(tmp_path, "good", "solved", passed=4)
    code, said = run(file, "-o", tmp_path / "one.html")
    assert (code, " 1 episode, " in said) == (0, True)
    page = (tmp_path / "one.html").read_text()
    assert timelines(tmp_path / "one.html") == ["task-good"]
    assert 'id="run"' not in page
    assert 'class="codeenv single"' in page


PARTIAL = {
    "running": ([opening("x"), START, turn(1)], "The recording goes no further"),
    "no-box": ([opening("x")], "The recording goes no further"),
    "no-turn": ([opening("x"), START, ended("failed")], "0</b> turns"),
    "closed": ([opening("x"), START, turn(1), END], "It was closed before it was judged."),
    "cut": ([opening("x"), START, turn(1), '{"kind": "tu'], "line 4: cut off after 12 bytes"),
    "infra": ([opening("x"), ended("infra", error={"type": "SandboxLost", "message": "gone"})], "SandboxLost"),
}


@pytest.mark.parametrize(("lines", "said"), PARTIAL.values(), ids=PARTIAL.keys())
def test_a_part_of_an_episode_is_shown(tmp_path: Path, lines: list[Any], said: str) -> None:
    file = written(tmp_path / "x.jsonl", *lines)
    if isinstance(lines[-1], str):
        file.write_text(file.read_text().removesuffix("\n"))
    for source in (file, tmp_path):
        write_report(source, tmp_path / "out.html")
        assert said in (tmp_path / "out.html").read_text()
        assert timelines(tmp_path / "out.html") == ["task-x"]


def test_failures_first_where_there_is_no_room_for_all(tmp_path: Path) -> None:
    for number in range(12):
        outcome = ("solved", "failed", "infra")[number % 3]
        episode(tmp_path, f"{number:02}-{outcome}", outcome, turns=4)
    out = tmp_path / "out.html"
    whole = write_report(tmp_path, out)
    assert (whole.timelines, "without a link" in out.read_text()) == (12, False)
    size = len(section(Recording.load(tmp_path / "01-failed.jsonl"), "e1", {}, LIMIT).encode())
    limit = FRAME + 12 * ROW_SIZE + size * 15 // 2
    some = write_report(tmp_path, out, limit=limit)
    shown = [name.rpartition("-")[2] for name in timelines(out)]
    assert (shown.count("infra"), shown.count("failed"), shown.count("solved")) == (4, 3, 0)
    assert (some.timelines, len(rows(out))) == (7, 12)
    assert some.size < limit
    assert "episodes without a link: this file has a bound" in out.read_text()
    linked = re.findall(r'<td><a href="#(e\d+)"', out.read_text())
    assert linked == re.findall(r'<section class="episode" id="(e\d+)"', out.read_text())


def test_of_one_long_episode_the_beginning(tmp_path: Path) -> None:
    file = episode(tmp_path, "long", turns=50)
    out = tmp_path / "out.html"
    assert write_report(file, out, limit=30_000).size < 100_000
    page = out.read_text()
    shown = page.count('<article class="turn"')
    assert 1 < shown < 49
    assert f"The turns {shown + 1} to 50 are left out: this file has a bound." in page


BAD: dict[str, tuple[str, str, str]] = {
    "no-source": ("nowhere", "out.html", "nowhere"),
    "no-recording": ("notes.txt", "out.html", "notes.txt, line 1: is no JSON"),
    "empty-folder": ("empty", "out.html", "empty: has no recordings (files *.jsonl, as `codeenv eval --record` writes"),
    "foreign-folder": ("foreign", "out.html", "x.jsonl, line 1: is no line of a recording"),
    "no-folder-for-it": ("run", "nowhere/out.html", "there is no folder"),
    "out-is-a-folder": ("run", "empty", "is a folder; the report is one file, as"),
    "out-is-a-recording": ("run", "run/r.jsonl", "r.jsonl is there and is no HTML file: it is not overwritten"),
    "out-is-no-file": ("run", "/dev/null", "/dev/null is neither a file nor new"),
    "out-has-a-long-name": ("run", f"{'x' * 300}.html", "cannot be written: File name too long"),
    "out-in-a-strange-place": ("run", "/proc/out.html", "/proc/out.html: cannot be written: "),
    "out-in-a-file": ("run", "notes.txt/out.html", "there is no folder"),
}


@pytest.mark.parametrize(("source", "out", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_named(tmp_path: Path, source: str, out: str, message: str) -> None:
    (tmp_path / "notes.txt").write_text("notes\n")
    for name in ("empty", "foreign", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "foreign" / "x.jsonl").write_text("{}\n")
    kept = episode(tmp_path / "run", "r").read_bytes()
    code, said = run(tmp_path / source, "-o", tmp_path / out)
    assert code == 2
    assert message in said
    assert (tmp_path / "run" / "r.jsonl").read_bytes() == kept
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "empty", "foreign", "notes.txt", "r.jsonl", "run", "x.jsonl"
    ]  # fmt: skip


def test_a_report_is_written_again(tmp_path: Path) -> None:
    file, out = episode(tmp_path, "r"), tmp_path / "out.html"
    write_report(file, out)
    assert write_report(tmp_path, out).episodes == 1
    assert 'id="run"' in out.read_text()
    (tmp_path / "empty.html").touch()
    write_report(file, tmp_path / "empty.html")


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.html").touch()
    (tmp_path / "link.html").symlink_to("real.html")
    write_report(episode(tmp_path, "r"), tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert timelines(tmp_path / "real.html") == ["task-r"]


@pytest.mark.anyio
async def test_an_episode_as_it_was_played(provider: SandboxProvider, tmp_path: Path) -> None:
    async with playing(provider, record=tmp_path, observation_tokens=200) as player:
        await player.bash("echo begin; seq 1 20000; echo end; false")
        await player.call("edit_file", path="adding.py", old_text="abs(a) + abs(b)", new_text="a + b")
        await player.call("run_tests")
        await player.call("submit")
        assert (await player.finish()).solved
    write_report(tmp_path, tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert re.search(r'begin\n1\n2\n[\d\n]+<mark class="cut">\[\.\.\. [\d,]+ characters', page)
    assert "before it was cut: 106.4 KiB" in page
    assert '<span class="flag">exit 1</span>' in page
    assert '<span class="del">-    return abs(a) + abs(b)\n</span><span class="add">+    return a + b\n</span>' in page
    assert page.count('class="panel" role="img" aria-label="2 of 2 tests passed"') == 2
    assert '<svg class="strip"' in page


def test_figures_that_are_none(tmp_path: Path) -> None:
    """JSON as Python writes it knows NaN and infinity."""
    wild = [float("nan"), float("inf"), -5.0, 1e300]
    lines = [opening("x"), {**START, "seconds": wild[0]}]
    for number, value in enumerate(wild, 1):
        lines.append(turn(number, at=value, waited=value, seconds=value, results=[bash("ls", "", seconds=value)]))
    judged = {"outcome": "failed", "reward": wild[0], "exit_code": 1, "tests": [], "seconds": wild[1]}
    end = {**END, "outcome": "failed", "seconds": wild[1], "verdict": judged, "tally": {"grade_seconds": wild[1]}}
    written(tmp_path / "x.jsonl", *lines, end)
    write_report(tmp_path, tmp_path / "out.html")
    drawn = re.findall(r'\s(?:x|width|y|height)="(.*?)"', (tmp_path / "out.html").read_text())
    assert drawn
    assert not [value for value in drawn if not re.fullmatch(r"[\d.]+", value)]


def test_the_policy_of_the_page(tmp_path: Path) -> None:
    hostile(tmp_path)
    write_report(tmp_path, tmp_path / "out.html")
    data = (tmp_path / "out.html").read_bytes()
    page = data.decode()  # valid, whatever a lone surrogate would do
    policy = re.findall(r'Content-Security-Policy" content="(.*?)"', page)[0].replace("&#39;", "'")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert all(
        re.fullmatch(r"'sha256-[\w+/=]{44}'", one) for key in ("script-src", "style-src") for one in rules[key].split()
    )
    assert not re.findall(
        r"\sstyle=|\son\w+=\"|https?://", page.replace("http://127.0.0.1:9", "").replace("http-equiv", "")
    )
    assert HOSTILE[:40] not in page


def row(outcome: str | None = "failed", **fields: Any) -> Summary:
    return Summary(**{"file": "f", "id": "i", "task": "t", "outcome": outcome, **fields})


def test_an_overview() -> None:
    found = overview_of(
        [
            row("solved", task="easy", policy="a", reward=1.0, tests_passed=4, tests_total=4, turns=2, seconds=4.0),
            row("failed", task="hard", policy="a", reward=0.0, tests_passed=1, tests_total=4, turns=4, seconds=8.0),
            row("infra", task="easy", policy="b", turns=9, seconds=1.0),
            row(None, task="hard", policy="b", turns=1),
        ]
    )
    assert [(part.name, part.value) for part in found.outcomes] == [
        ("solved", 1), ("failed", 1), ("infra", 1), ("open", 1)
    ]  # fmt: skip
    assert (found.total.episodes, found.total.rewarded, found.total.solved, found.total.reward) == (4, 2, 1, 0.5)
    assert [(one.name, one.passed, one.solved, one.episodes) for one in found.tasks] == [
        ("hard", 0.25, 0, 2),
        ("easy", 1.0, 1, 2),
    ]
    assert [one.name for one in found.policies] == ["a", "b"]
    assert overview_of([row()]).policies == ()
    assert found.longest == 8.0


def test_the_split_of_an_episodes_time() -> None:
    one = row(seconds=10.0, model_seconds=3.0, sandbox_seconds=2.0, grading_seconds=4.0)
    assert split(one) == (3.0, 2.0, 4.0, 1.0)
    assert [(part.name, part.start, part.share) for part in parts([("a", 1), ("b", 0), ("c", 3)])] == [
        ("a", 0.0, 0.25),
        ("c", 0.25, 0.75),
    ]
    assert parts([]) == parts([("a", 0)]) == ()


@pytest.mark.parametrize(
    ("values", "counts"),
    [([], {}), ([3], {0: 1}), ([0, 12, 6, 6], {0: 1, 6: 2, 11: 1}), ([float("nan"), 1], {0: 1})],
    ids=["none", "one", "some", "nan"],
)
def test_a_histogram(values: list[float], counts: dict[int, int]) -> None:
    found = histogram(values)
    assert {bin: count for bin, count in enumerate(found.counts) if count} == counts
    assert histogram([0, 1], low=0, high=1).counts[0] == histogram([0, 1], low=0, high=1).counts[-1] == 1
    assert isinstance(found, Histogram)


def test_nothing_of_an_opening_is_needed(tmp_path: Path) -> None:
    written(tmp_path / "x.jsonl", OPENING)
    assert write_report(tmp_path, tmp_path / "out.html").timelines == 1
