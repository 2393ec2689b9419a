"""Write docs/prompts.md: what is said of the templates below, and what they make of three small tasks.

A test compares the file with `document()`.
"""

# ruff: noqa: E501 - lines of a document
from __future__ import annotations

from pathlib import Path
from typing import Any

from codeenv.briefing import system_message, task_message
from codeenv.prompts import TEMPLATES, default_prompts
from codeenv.settings import EpisodeSettings
from codeenv.task import Answer, Task
from codeenv.text_protocol import fence_for

FILE = Path(__file__).parent.parent / "docs" / "prompts.md"
WORKDIR = "/workspace"

USES = {
    "system.j2": "system message, where there are tools (native or as text)",
    "answer.j2": "system message, where one message is the answer",
    "task.j2": "first user message of a `project`",
    "function.j2": "first user message of a `function`",
    "program.j2": "first user message of a `program`",
    "bash.j2": "what a command printed, and how it ended",
    "tests.j2": "what `run_tests` tells",
    "invalid.j2": "a call that cannot be understood",
    "no_action.j2": "a message without a call",
}

TEXT = """\
# Prompts

Everything that a policy reads is a Jinja2 template in `prompts/`. A task's `family` says which one its first message is made of; its text is a value there, never a template.
`prompts=DIR` replaces ours by name, `system_prompt` the whole system message. A template may use the names that it is given and no others, which is checked when the environment is made.

{table}

`code` is the file that an answer goes into (`path`), as it is at the start, where the instruction does not hold it already: always in the protocol `answer`, else for functions and programs of up
to 8,000 characters. `fence` is a run of backticks that may stand around it.

## One message, one block of code

With `max_turns=1` the protocol is `answer` where every task has an `answer` (`path`, `entry_point`, `head`), or say `protocol="answer"`. No tools are offered and the policy has no box. The code of its
message becomes `answer.path`, laid over the task's files, and is judged like any other workspace: the outcome is `solved` or `failed`, and `limit` only when no message came. A message
without code has failed, without a grading; the verdict's `reason` says why.

Which code of a message:

1. What stands before the last `</think>` (`</thinking>`, `</reasoning>`) is not read. Reasoning that has no end is no answer.
2. Blocks are fenced by three or more backticks or tildes; indented ones, ones in a list and ones that are never closed count. A fence in a string of three quotes is a part of the code. Without any fence, `[PYTHON]` and `[BEGIN]` ...
   `[DONE]` do as well.
3. `python`, `py`, `python3` and the like, in any case, or a path that ends in `.py` say that a block is Python. One that names nothing may be. Any other (`bash`, `diff`, `text`, `json`) is not read.
4. For a function or class: the last block that defines `entry_point` at its top level. So a usage example, tests or an output behind it do no harm. If none does: the last one that is the inside of `head`'s last
   function (a body), or that has the methods of `head`'s class as functions.
5. For a program, and where 4 finds nothing: the last block that says it is Python, whether or not it is; else the last one that is Python and more than a word or a number.
6. Without any fence: the message, if it is code, or a body; else the first lines of it that are code and define what is asked for.

What becomes of it:

- A body is put behind `head`, indented as that asks for: by tabs, by two blanks, at the margin, or with its first line stripped.
- Where it is a whole function, what stands in `head` before the function (imports, helpers) is put in front, unless the code has those names itself; behind its own `from __future__` lines.
- Nothing else is changed. A block that is indented as a whole is put to the margin, CRLF becomes LF. `if __name__ == "__main__":` stays: it runs where the file is run as a program (`stdio`), and not where it is imported (`functions`, `pytest`).
  Calls at the top level stay as well and run at the import, as in HumanEval's own harness: an `input()` there, or an assertion that fails, fails the answer. (evalplus and BigCodeBench cut them away before they
  run what is left.)
- Files that do not end in `.py` get the last block of any language, as it is.

## Examples
"""


def example(family: str) -> Task:
    """A task of our own of that family."""
    shared: dict[str, Any] = {"id": "example", "tests": {"test_x.py": b""}, "family": family}
    if family == "function":
        head = 'def widest(rows: list[str]) -> int:\n    """The length of the longest row; 0 when there is none."""\n'
        answer = Answer(path="solution.py", entry_point="widest", head=head)
        return Task(instruction="Complete `widest`.", files={"solution.py": head.encode()}, answer=answer, **shared)
    if family == "program":
        said = "A line holds two integers. Print their sum.\n\nFor `2 3` that is `5`."
        return Task(instruction=said, files={"solution.py": b""}, answer=Answer(path="solution.py"), **shared)
    said = "`shop.total` forgets the discount of a basket of ten. Make it right."
    files = {"shop/__init__.py": b"", "shop/basket.py": b"def total(items):\n    return sum(items)\n", "README.md": b""}
    return Task(instruction=said, files=files, answer=Answer(path="shop/basket.py", entry_point="total"), **shared)


def document() -> str:
    rows = [
        f"| `{name}` | {use} | {', '.join(f'`{given}`' for given in TEMPLATES[name]) or '-'} |"
        for name, use in USES.items()
    ]
    table = "\n".join(["| template | for | is given |", "|---|---|---|", *rows])
    parts = [TEXT.replace("{table}", table)]
    prompts = default_prompts()
    for protocol in ("tools", "answer"):
        settings = EpisodeSettings(protocol=protocol)
        parts.append(_shown(f"The system message, protocol `{protocol}`", system_message(settings, prompts, WORKDIR)))
        for family in ("project", "function", "program"):
            said = task_message(example(family), prompts, WORKDIR, protocol)
            parts.append(_shown(f"A {family}, protocol `{protocol}`", said))
    return "\n".join(parts)


def _shown(title: str, text: str) -> str:
    fence = fence_for(text)
    return f"### {title}\n\n{fence}text\n{text}\n{fence}\n"


if __name__ == "__main__":
    FILE.write_text(document(), encoding="utf-8")
