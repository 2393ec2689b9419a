# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeenv.text_protocol import MIDDLE, NEW, OLD, Block, parse, write
from codeenv.tools import TOOLS, ToolCall, definitions

ALL = tuple(TOOLS)
EDIT = f"```edit_file a.py\n{OLD}\nx = 1\n{MIDDLE}\nx = 2\n{NEW}\n```"


def calls(message: str) -> list[tuple[str, dict[str, str]]]:
    blocks = parse(message, ALL)
    assert not [block.fault for block in blocks if block.fault]
    return [(block.tool, block.arguments) for block in blocks]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("```bash\nls\npwd\n```", [("bash", {"command": "ls\npwd"})], id="bash"),
        pytest.param("I look.\n```bash\nls\n```\nDone.", [("bash", {"command": "ls"})], id="between-prose"),
        pytest.param("```bash \t\nls\n```  ", [("bash", {"command": "ls"})], id="trailing-blanks"),
        pytest.param("``` bash\nls\n```", [("bash", {"command": "ls"})], id="blank-before-name"),
        pytest.param("```bash\r\nls\r\n\r\npwd\r\n```\r\n", [("bash", {"command": "ls\n\npwd"})], id="crlf-message"),
        pytest.param("```write_file a b/c d.py \nx\n```", [("write_file", {"path": "a b/c d.py", "content": "x\n"})], id="path-with-blanks"),
        pytest.param("```write_file e\n```", [("write_file", {"path": "e", "content": ""})], id="empty-file"),
        pytest.param("```write_file e\n\n```", [("write_file", {"path": "e", "content": "\n"})], id="one-empty-line"),
        pytest.param("```read_file a.py\n```\n```submit\n```", [("read_file", {"path": "a.py"}), ("submit", {})], id="several-in-order"),
        pytest.param(EDIT, [("edit_file", {"path": "a.py", "old_text": "x = 1\n", "new_text": "x = 2\n"})], id="edit"),
        pytest.param(EDIT.replace("x = 2\n", ""), [("edit_file", {"path": "a.py", "old_text": "x = 1\n", "new_text": ""})], id="edit-removes"),
        pytest.param(EDIT.replace("\n", "\r\n"), [("edit_file", {"path": "a.py", "old_text": "x = 1\n", "new_text": "x = 2\n"})], id="edit-crlf"),
        pytest.param("````write_file r.md\n```bash\nls\n```\n````", [("write_file", {"path": "r.md", "content": "```bash\nls\n```\n"})], id="longer-fence"),
        pytest.param("```bash\ncat <<E\n  ```\nE\n```", [("bash", {"command": "cat <<E\n  ```\nE"})], id="indented-fence-does-not-close"),
        pytest.param("```bash\nls\n`````", [("bash", {"command": "ls"})], id="closed-by-more"),
        pytest.param("  ```bash\n  rm -rf x\n  ```", [], id="indented-is-prose"),
        pytest.param("> ```bash\n> rm\n> ```", [], id="quoted-is-prose"),
        pytest.param("```python\nbash\n```", [], id="other-language"),
        pytest.param("```python3\nx\n```\n```c++\ny\n```\n```sh\nz\n```\n```Bash\nz\n```", [], id="other-languages"),
        pytest.param("````markdown\n```bash\nrm -rf x\n```\n````", [], id="tool-block-inside-prose-block"),
        pytest.param("````\n```bash\nrm -rf x\n```\n````", [], id="tool-block-inside-bare-block"),
        pytest.param("```text\nunclosed", [], id="unclosed-prose"),
        pytest.param("`bash` and ```bash``` and ``` are words", [], id="inline"),
        pytest.param("", [], id="empty"),
        pytest.param("no blocks at all", [], id="none"),
    ],
)  # fmt: skip
def test_blocks(message: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    assert calls(message) == expected


@pytest.mark.parametrize(
    ("message", "says"),
    [
        pytest.param("```bash\nrm -rf x", "never closed with ```", id="unclosed"),
        pytest.param("````bash\nrm -rf x\n```", "never closed with ````", id="closed-by-too-few"),
        pytest.param("```write_file r.md\n```bash\nls\n```\nmore\n```bash\nrm\n```\n```", "more backticks (````", id="nested"),
        pytest.param("```bash\nls\n```read_file x\n```", "more backticks", id="close-forgotten"),
        pytest.param(EDIT.replace(MIDDLE + "\n", ""), "each marker once", id="edit-no-middle"),
        pytest.param(EDIT.replace(OLD + "\n", ""), "each marker once", id="edit-no-old"),
        pytest.param(EDIT.replace(NEW, NEW + "\n" + NEW), "each marker once", id="edit-marker-twice"),
        pytest.param(f"```edit_file a\n{NEW}\n{MIDDLE}\n{OLD}\n```", "each marker once", id="edit-wrong-order"),
    ],
)  # fmt: skip
def test_an_unclear_block_runs_nothing_and_says_why(message: str, says: str) -> None:
    (block,) = parse(message, ALL)
    assert says in block.fault
    assert block.arguments == {}


def test_what_comes_before_an_unclear_block_stands() -> None:
    blocks = parse("```bash\nls\n```\n```write_file a\nx", ALL)
    assert blocks[0] == Block("bash", {"command": "ls"})
    assert blocks[1].fault
    assert len(blocks) == 2


def test_only_the_tools_on_offer_are_blocks() -> None:
    assert parse("```run_tests\n```\n```bash\nls\n```", ("bash",)) == [Block("bash", {"command": "ls"})]


lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30)
fences = st.sampled_from(["```", "````", "```bash", "  ```", "`````write_file x", OLD, "======", "\\", "\r"])
texts = st.lists(st.one_of(lines, fences), max_size=8).map(lambda parts: "".join(part + "\n" for part in parts))
paths = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=20).filter(
    lambda p: "`" not in p
)


@given(path=paths, content=texts)
def test_a_written_file_is_read_back(path: str, content: str) -> None:
    assert calls(f"Text.\n\n{write('write_file', {'path': path, 'content': content})}\n") == [
        ("write_file", {"path": path, "content": content})
    ]


@given(command=texts)
def test_a_command_is_read_back(command: str) -> None:
    assert calls(write("bash", {"command": command})) == [("bash", {"command": command.removesuffix("\n")})]


marks = (OLD, MIDDLE, NEW)
edits = texts.filter(lambda text: not any(line.rstrip() in marks for line in text.split("\n")))


@given(path=paths, old=edits, new=edits)
def test_an_edit_is_read_back(path: str, old: str, new: str) -> None:
    arguments = {"path": path, "old_text": old, "new_text": new}
    assert calls(write("edit_file", arguments)) == [("edit_file", arguments)]


@given(message=st.lists(st.one_of(lines, fences), max_size=12).map("\n".join))
def test_any_message_is_understood_or_faulted(message: str) -> None:
    for block in parse(message, ALL):
        assert block.tool in ALL
        assert bool(block.fault) <= (not block.arguments)


@pytest.mark.parametrize("path", [" a", "a ", "a\nb"])
def test_a_path_that_no_block_can_carry_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="cannot stand in a block"):
        write("read_file", {"path": path})


def test_each_tool_can_be_written() -> None:
    for definition in definitions(ALL):
        arguments = dict.fromkeys(definition["parameters"]["required"], "x")
        assert [block.tool for block in parse(write(definition["name"], arguments), ALL)] == [definition["name"]]
        ToolCall(definition["name"], arguments)
