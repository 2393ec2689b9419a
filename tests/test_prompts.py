from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from codeenv.briefing import LISTED_FILES, SHOWN_CODE, system_message, task_message
from codeenv.calls import TOOLS
from codeenv.prompts import TEMPLATES, Prompts, default_prompts
from codeenv.settings import EpisodeSettings
from codeenv.task import Answer
from tests.episodes import pytest_task

HOSTILE = "{{ 7 * 7 }} {% for x in range(9) %}x{% endfor %} {# no #} <b>&amp;</b> {{ self.__init__.__globals__ }}"


def test_a_tasks_text_is_a_value_and_never_a_template() -> None:
    text = task_message(pytest_task(instruction=HOSTILE), default_prompts(), "/workspace")
    assert HOSTILE in text
    assert "- adding.py" in text


def test_hidden_parts_never_enter_a_message() -> None:
    task = pytest_task(
        {"test_adding.py": "SECRET_TEST = 1"},
        solution={"adding.py": b"SECRET_SOLUTION"},
        wrong={"w": {"adding.py": b"SECRET_WRONG"}},
    )
    said = task_message(task, default_prompts(), "/w") + system_message(EpisodeSettings(), default_prompts(), "/w")
    assert "SECRET" not in said
    assert "test_adding" not in said


def test_a_long_list_of_files_is_cut() -> None:
    files = {f"f{number:04}.py": "" for number in range(LISTED_FILES + 7)}
    text = task_message(pytest_task(files=files), default_prompts(), "/w")
    assert text.count("\n- f") == LISTED_FILES
    assert text.endswith("- and 7 more")
    assert "(none yet)" in task_message(pytest_task(files={}), default_prompts(), "/w")


def test_a_tasks_own_command_limit_is_said() -> None:
    assert "after 7 seconds" in task_message(pytest_task(limits={"command_timeout": 7}), default_prompts(), "/w")
    assert "seconds" not in task_message(pytest_task(), default_prompts(), "/w")


@pytest.mark.parametrize("protocol", ["tools", "text"])
@pytest.mark.parametrize("tools", [tuple(TOOLS), ("bash",)], ids=["all", "bash"])
def test_the_system_message_says_what_is_on_offer(protocol: str, tools: tuple[str, ...]) -> None:
    settings = EpisodeSettings(protocol=protocol, tools=tools, max_turns=9, command_timeout=12.5)  # type: ignore[arg-type]
    said = system_message(settings, default_prompts(), "/there")
    assert "/there" in said
    assert "9 turns" in said
    assert "12.5 seconds" in said
    assert ("`submit`" in said) == ("submit" in tools)
    assert ("at most 10 times" in said) == ("run_tests" in tools)
    if protocol == "text":
        assert [name for name in TOOLS if f"```{name}" in said] == list(tools)


def test_a_users_template_replaces_ours_by_name(tmp_path: Path) -> None:
    (tmp_path / "invalid.j2").write_text("NO: {{ fault }}{% for i in range(2) %}!{% endfor %}")
    prompts = Prompts(tmp_path)
    assert prompts.render("invalid.j2", fault="{{ x }}") == "NO: {{ x }}!!"
    assert "no tool call" in prompts.render("no_action.j2", protocol="tools", tool_names=("bash",))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("sytem.j2", "", "sytem.j2; the templates are system.j2, task.j2"),
        ("task.j2", "{{ instruction", "task.j2"),
        ("task.j2", "{{ instructions }}", "task.j2 uses instructions; it is given instruction, files"),
        ("task.j2", "{% for x in nothing %}{% endfor %}", "task.j2 uses nothing"),
    ],
    ids=["unknown-file", "syntax", "unknown-name", "unknown-name-in-a-loop"],
)
def test_a_faulty_template_is_found_when_it_is_loaded(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=re.escape(says)):
        Prompts(tmp_path)


def test_a_users_template_reaches_no_python(tmp_path: Path) -> None:
    (tmp_path / "invalid.j2").write_text("{{ fault.__class__.__mro__ }}")
    with pytest.raises(ValueError, match=r"invalid\.j2"):
        Prompts(tmp_path).render("invalid.j2", fault="x")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Prompts(tmp_path / "nowhere")


def test_every_shipped_template_renders_with_what_it_is_given() -> None:
    for name, given in TEMPLATES.items():
        values = {key: [] if key in ("tools", "tool_names", "files", "failures") else "x" for key in given}
        assert default_prompts().render(name, **values).strip()


def test_the_documentation_shows_what_the_templates_make() -> None:
    """`python .ci/prompts.py` writes it."""
    root = Path(__file__).parents[1]
    made = runpy.run_path(str(root / ".ci" / "prompts.py"))
    assert set(made["USES"]) == set(TEMPLATES)
    assert (root / "docs" / "prompts.md").read_text(encoding="utf-8") == made["document"]()


@pytest.mark.parametrize("family", ["project", "function", "program"])
@pytest.mark.parametrize("protocol", ["tools", "text", "answer"])
def test_a_family_is_told_in_its_own_way(family: str, protocol: str) -> None:
    task = pytest_task(family=family, answer=Answer(path="adding.py", entry_point="add"), instruction=HOSTILE)
    text = task_message(task, default_prompts(), "/w", protocol)
    assert HOSTILE in text
    assert ("abs(a) + abs(b)" in text) == (family != "project" or protocol == "answer")
    assert ("Answer with one block" in text) == (protocol == "answer")
    assert ("/w" in text) == (protocol != "answer")
    assert "\n\n\n" not in text


def test_code_is_shown_once_and_only_while_it_is_short() -> None:
    def told(code: str, protocol: str = "tools", instruction: str = "Do.") -> str:
        task = pytest_task(files={"a.py": code}, answer=Answer(path="a.py"), family="program", instruction=instruction)
        return task_message(task, default_prompts(), "/w", protocol)

    assert told("marker()\n", instruction="Complete\n\nmarker()\n").count("marker()") == 1
    assert "marker" not in told("marker()" + "\n" * SHOWN_CODE + "x")
    assert "marker" in told("marker()" + "\n" * SHOWN_CODE + "x", "answer")
    assert "````python\nx = '''\n```\n'''\n````" in told("x = '''\n```\n'''\n")
    assert "as it is" not in told("\n")
