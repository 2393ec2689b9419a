"""A run and verdicts as they are looked at, and what episodes show of themselves as HTML."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import codeenv
from codeenv.grading.verdict import TestResult, Verdict
from codeenv.notebook import OpenEpisode, Run, Verdicts
from codeenv.record import RecordingError
from tests.conftest import provider_or_skip
from tests.episodes import GOOD, TEST_ADD, pytest_task

pytestmark = pytest.mark.anyio


def verdict(**tests: bool) -> Verdict:
    found = tuple(TestResult(id=f"t.py::{name}", passed=passed) for name, passed in tests.items())
    return Verdict(outcome="solved" if all(tests.values()) else "failed", tests=found)


def test_verdicts_beside_each_other() -> None:
    both = Verdicts({"before": verdict(a=True, b=False), "after": verdict(b=True, a=True, new=True)})
    assert both.tests == {"t.py::a": [True, True], "t.py::b": [False, True], "t.py::new": [None, True]}
    assert repr(both).splitlines() == ["before  +-   failed", "after   +++  solved"]
    assert list(both) == ["before", "after"]
    page = both._repr_html_()
    assert page.count('class="cell passed">✓') == 4
    assert page.count('class="cell missed">✗') == 1
    assert '<td class="cell">1/2</td>' in page
    assert repr(Verdicts({})) == "no verdicts"


@pytest.fixture
async def ep(tmp_path: Path) -> AsyncIterator[OpenEpisode]:
    provider_or_skip("bubblewrap")
    async with await codeenv.open_episode(pytest_task(), record=tmp_path / "run") as opened:
        yield opened


async def test_a_run(ep: OpenEpisode, tmp_path: Path) -> None:
    fork = await ep.fork()
    await fork.write("adding.py", GOOD)
    await fork.finish()
    (tmp_path / "run" / "other.jsonl").write_text("no recording\n")
    run = Run(tmp_path / "run")
    assert [(row.task, row.outcome) for row in run] == [("adding", None), ("adding", "solved")]
    (solved,) = run.where(outcome="solved", policy="by hand")
    assert repr(run).splitlines()[1] == "adding  by hand: solved, 2/2 tests, 1 turns"
    assert run.recording(solved).turns[0].results[0].arguments == {"path": "adding.py", "content": GOOD}
    assert list(run.unreadable) == ["other.jsonl"]
    page = run._repr_html_()
    assert '<rect class="got" width="120.0"' in page
    assert page.count("<th>by hand</th>") == 1
    with pytest.raises(AttributeError, match="no_field"):
        run.where(no_field=1)
    with pytest.raises(FileNotFoundError):
        Run(tmp_path / "none")
    ep.path.write_text("\n")
    with pytest.raises(RecordingError, match="line 1"):
        run.recording(run[0])


async def test_all_that_it_gives_shows_itself(ep: OpenEpisode) -> None:
    seen = await ep.bash("echo '<b>bold</b>' | tee a.txt")
    verdict = await ep.run_tests()
    pages = [shown._repr_html_() for shown in (seen, verdict, ep.files, ep.diff(), ep.task, ep.recording, ep)]
    for page in pages:
        assert page.startswith('<div class="codeenv"><style>')
        assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in pages[0]
    assert 'aria-label="1 of 2 tests passed"' in pages[-1]
    assert TEST_ADD not in html.unescape(pages[4])
    assert "1  bash echo" in repr(ep.recording)
    assert repr(ep.recording).startswith("adding on bubblewrap: not ended")
    assert '<span class="badge">open</span>' in pages[-1]
    ep.close()
    assert '<span class="badge">stopped</span>' in ep._repr_html_()
