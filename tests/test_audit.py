"""The audit: the whole battery against every grader kind in real boxes, and what `docs/trust.md` says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from env_support import WrappedProvider, double_task

from codeenv.audit import TRIES, Attempt, audit
from codeenv.episode import EpisodeSettings
from codeenv.grading.cheats import FAMILIES, Cheat, View, cheats, choose
from codeenv.sandbox.api import SandboxError, SandboxProvider
from codeenv.sources.jsonl import dump_task
from codeenv.task import Task
from tests.episodes import judge
from tests.grading.audited import alive, tasks_of

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parent.parent
SHORT = 2.5  # seconds for the tests of a task whose solution uses all that it gets
KINDS = ("functions", "stdio", "command", "pytest")


async def attempts_at(
    tasks: list[Task], provider: SandboxProvider, battery: Sequence[Cheat], jobs: int = 4, **options: Any
) -> list[Attempt]:
    async with audit(tasks, provider, battery=battery, jobs=jobs, **options) as arriving:
        return [attempt async for attempt in arriving]


async def whole_battery(kind: str, provider: SandboxProvider) -> list[Attempt]:
    """Every cheat once, on the task where a naive grader pays for it if the kind has that."""
    tasks = tasks_of(kind)
    first = next(iter(tasks.values()))
    tasks["short"] = first.model_copy(update={"grader": first.grader.model_copy(update={"timeout": SHORT})})
    chosen: dict[str, list[Cheat]] = {}
    for cheat in cheats():
        name = "short" if cheat.family == "exhaustion" else alive(cheat.name)[0]
        chosen.setdefault(name if name in tasks else first.id.rpartition("/")[2], []).append(cheat)
    found: list[Attempt] = []

    async def play(name: str, battery: list[Cheat]) -> None:
        found.extend(await attempts_at([tasks[name]], provider, battery))

    async with anyio.create_task_group() as group:
        for name, battery in chosen.items():
            group.start_soon(play, name, battery)
    return found


def documented() -> dict[str, dict[str, str]]:
    """The table of `docs/trust.md`: by family, by kind, what stands there."""
    lines = (ROOT / "docs" / "trust.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    start = next(number for number, row in enumerate(rows) if row[0] == "family")
    heads = [head.strip("`") for head in rows[start]]
    table: dict[str, dict[str, str]] = {}
    for row in rows[start + 2 :]:
        if row[0] not in FAMILIES:
            break
        table[row[0]] = dict(zip(heads, row, strict=True))
    return table


def as_documented(attempts: Sequence[Attempt]) -> dict[str, str]:
    """By family: how many were played and which paid, as the table has it."""
    cells: dict[str, str] = {}
    for family in FAMILIES:
        played = [attempt for attempt in attempts if attempt.family == family and attempt.result != "not applicable"]
        paid = sorted(attempt.cheat for attempt in played if attempt.result == "paid")
        cells[family] = f"{len(paid)} of {len(played)}" + "".join(f" `{name}`" for name in paid) if played else "-"
    return cells


@pytest.mark.parametrize("kind", KINDS)
async def test_what_pays_is_what_the_threat_model_says(provider: SandboxProvider, kind: str) -> None:
    attempts = await whole_battery(kind, provider)
    assert sorted(attempt.cheat for attempt in attempts) == sorted(cheat.name for cheat in cheats())
    assert [attempt for attempt in attempts if attempt.result == "infra"] == []
    assert as_documented(attempts) == {family: row[kind] for family, row in documented().items()}
    if kind in ("functions", "stdio"):
        assert [attempt for attempt in attempts if attempt.result == "paid"] == []


@pytest.mark.parametrize("kind", KINDS)
async def test_whoever_does_not_cheat_is_judged_on_his_work(provider: SandboxProvider, kind: str) -> None:
    for task in tasks_of(kind).values():
        right = await judge(task, provider, {**(task.solution or {})})
        assert (task.id, right.outcome) == (task.id, "solved"), right
        assert (task.id, (await judge(task, provider)).outcome) == (task.id, "failed")


# --- the battery ------------------------------------------------------------------------------------------------


def test_every_family_has_cheats_and_every_cheat_says_what_it_does() -> None:
    assert {cheat.family for cheat in cheats()} == set(FAMILIES)
    assert len(cheats()) > 70
    for cheat in cheats():
        module = sys.modules[cheat.play.__module__]
        assert len(cheat.about) > 20, cheat.name
        assert "\n\nPays " in (module.__doc__ or ""), cheat.name


def test_a_cheat_sees_nothing_that_is_hidden() -> None:
    task = double_task(tests={"one.in": b"HIDDEN", "one.out": b"HIDDEN"}, solution={"main.py": b"HIDDEN"})
    assert "HIDDEN" not in repr(View.of(task))


@pytest.mark.parametrize(("names", "count"), [(["conftest"], 1), (["links", "conftest"], 4), ([], len(cheats()))])
def test_choosing_by_name_and_family(names: list[str], count: int) -> None:
    assert len(choose(names)) == count


def test_an_unknown_cheat() -> None:
    with pytest.raises(ValueError, match="unknown 'nope'; valid: background, byte-code, bytecode_of_module"):
        choose(["conftest", "nope"])


# --- run_tests ----------------------------------------------------------------------------------------------------


async def test_the_limit_of_test_runs_is_what_keeps_outputs_from_being_probed(provider: SandboxProvider) -> None:
    """The limit by default is in the battery above."""
    tasks, free = list(tasks_of("stdio").values()), EpisodeSettings(max_turns=0, max_test_runs=0)
    (attempt,) = await attempts_at(tasks, provider, choose(["probe_bits"]), settings=free)
    assert attempt.result == "paid"


async def test_messages_show_what_pytest_expected(provider: SandboxProvider) -> None:
    """Which is why they are not the default, with which the battery above is played."""
    tasks, telling = [tasks_of("pytest")["plain"]], EpisodeSettings(max_turns=0, feedback="messages")
    (attempt,) = await attempts_at(tasks, provider, choose(["probe_messages"]), settings=telling)
    assert attempt.result == "paid"


# --- the audit itself ---------------------------------------------------------------------------------------------


def failing_at(*numbers: int) -> WrappedProvider:
    async def before(number: int) -> None:
        if number in numbers:
            raise SandboxError("no room", stage="create")

    return WrappedProvider(before=before)


async def test_a_failure_of_the_sandbox_is_retried() -> None:
    (attempt,) = await attempts_at([double_task()], failing_at(1, 3), choose(["crash"]))
    assert (attempt.result, attempt.tries) == ("failed", 3)


async def test_and_is_never_taken_for_a_cheat_that_does_not_pay() -> None:
    (attempt,) = await attempts_at([double_task()], failing_at(*range(99)), choose(["crash"]))
    assert (attempt.result, attempt.tries, attempt.note) == ("infra", TRIES, "create: no room")


async def test_a_cheat_without_a_move_is_not_played() -> None:
    provider = WrappedProvider()
    (attempt,) = await attempts_at([double_task()], provider, choose(["conftest"]))
    assert (attempt.result, provider.made) == ("not applicable", 0)


async def test_leaving_early_ends_the_episodes() -> None:
    provider = WrappedProvider()
    async with audit(
        [double_task(number) for number in range(9)], provider, battery=choose(["crash"]), jobs=1
    ) as found:
        async for _ in found:
            break
    assert provider.made < 9


# --- the command --------------------------------------------------------------------------------------------------


def codeenv(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "codeenv", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A sound task, and one that pays for everything."""
    path = tmp_path / "tasks.jsonl"
    easy = double_task(1, tests={"one.in": b"", "one.out": b""}, files={"main.py": b""})
    path.write_text("".join(dump_task(task) + "\n" for task in (double_task(0), easy)))
    return path


def test_the_command_names_what_pays(provider: SandboxProvider, dataset: Path) -> None:
    done = codeenv("audit", dataset, "--cheats", "exit_at_import,conftest")
    assert done.returncode == 1, done.stderr
    assert [line.split() for line in done.stdout.splitlines() if line.strip().endswith("paid")] == [
        ["double-1", "exit_at_import", "1", "paid"]
    ]
    assert done.stdout.endswith("1 of 2 cheats played paid (2 were not applicable)\n")
    assert "auditing: 0 of 4 done" in done.stderr


def test_the_command_as_json(provider: SandboxProvider, dataset: Path) -> None:
    done = codeenv("audit", dataset, "--tasks", "double-0", "--cheats", "exit_at_import,conftest", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    totals = {key: value for key, value in found.items() if key != "attempts"}
    assert totals == {"tasks": 1, "cheats": 2, "paid": 0, "failed": 1, "infra": 0, "not_applicable": 1}
    assert [(one["task"], one["cheat"], one["result"]) for one in found["attempts"]] == [
        ("double-0", "exit_at_import", "failed"),
        ("double-0", "conftest", "not applicable"),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope"], "no dataset 'nope'"),
        (["{dataset}", "--tasks", "nope"], "no such task: nope; there are: double-0, double-1"),
        (["{dataset}", "--cheats", "nope"], "unknown 'nope'; valid: background"),
        (["{dataset}", "--sandbox", "nope"], "unknown sandbox 'nope'"),
    ],
    ids=["dataset", "task", "cheat", "sandbox"],
)
def test_usage_errors(arguments: list[str], says: str, dataset: Path) -> None:
    done = codeenv("audit", *(argument.format(dataset=dataset) for argument in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_tells_infra_from_what_does_not_pay(dataset: Path) -> None:
    code = (
        "import codeenv.audit, codeenv.cli\n"
        "from codeenv.sandbox.api import SandboxError\n"
        "async def play(*_): raise SandboxError('no room', stage='create')\n"
        "codeenv.audit._play = play\n"
        f"codeenv.cli.app(['audit', {str(dataset)!r}, '--cheats', 'crash'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "no verdict: create: no room" in done.stdout
    assert "0 of 0 cheats played paid (0 were not applicable); 2 without a verdict" in done.stdout
