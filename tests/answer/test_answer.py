"""Answers as people's models write them: which code is taken of a message, and how it goes with what was shown."""

from __future__ import annotations

import ast
import sys
import textwrap
import time
from typing import Any

import pytest

from codeenv.answer import NoAnswer, code_of
from codeenv.task import Answer

HEAD = '''\
from typing import List


def scale(x: int) -> int:
    """Used below."""
    return x * 10


def total(numbers: List[int]) -> int:
    """Ten times the sum.

    ```python
    >>> total([1, 2])
    30
    ```
    """
'''
BODY = """\
    result = 0
    for number in numbers:
        if number:
            result += scale(number)
    return result
"""
WHOLE = "def total(numbers: List[int]) -> int:\n" + BODY
FUNCTION = Answer(path="solution.py", entry_point="total", head=HEAD)
PROGRAM = Answer(path="solution.py")
READS = "n = int(input())\nprint(n * 2)\n"
CLASS_HEAD = "from typing import List\n\nclass Solution:\n    def total(self, numbers: List[int]) -> int:\n        "
CLASS = Answer(path="solution.py", entry_point="Solution", head=CLASS_HEAD)


def fenced(code: str, name: str = "python", fence: str = "```") -> str:
    return f"{fence}{name}\n{code}{'' if code.endswith(chr(10)) else chr(10)}{fence}"


def tabs(code: str) -> str:
    return code.replace("    ", "\t")


def two(code: str) -> str:
    return code.replace("    ", "  ")


def run(code: str, numbers: list[int]) -> int:
    names: dict[str, object] = {"__name__": "solution"}
    exec(compile(code, "solution.py", "exec"), names)  # noqa: S102
    made = names.get("Solution")
    return (made().total if isinstance(made, type) else names["total"])(numbers)  # type: ignore[operator, attr-defined]


FUNCTIONS = {
    "whole-function": f"Sure:\n\n{fenced(WHOLE)}\n\nIt adds and scales.",
    "whole-prompt": fenced(HEAD + BODY),
    "no-newline-at-the-end": f"```python\n{WHOLE.rstrip()}\n```",
    "imports-before": fenced("import os\nimport sys\n\n" + WHOLE),
    "imports-after": fenced(WHOLE + "\nimport os\n"),
    "future-import": fenced('"""Sums."""\nfrom __future__ import annotations\n\n' + WHOLE),
    "own-helper": fenced("def scale(x):\n    return 10 * x\n\n\n" + WHOLE),
    "main-block": fenced(WHOLE + '\nif __name__ == "__main__":\n    print(total([int(input())]))\n'),
    "lambda": fenced("total = lambda numbers: sum(map(scale, numbers))"),
    "body": fenced(BODY),
    "body-at-the-margin": fenced(textwrap.dedent(BODY)),
    "body-first-line-stripped": fenced(BODY.strip()),
    "body-of-tabs": fenced(tabs(BODY)),
    "body-of-two-blanks": fenced(two(BODY)),
    "body-without-a-name": fenced(BODY, ""),
    "body-bare": BODY,
    "body-bare-stripped": BODY.strip(),
    "body-that-prints": fenced("    print(numbers)\n" + BODY),
    "body-one-line": "return sum(map(scale, numbers))",
    "body-and-helper-behind": fenced("    return sum(map(helped, numbers))\n\n\ndef helped(x):\n    return scale(x)\n"),
    "bare": WHOLE,
    "bare-prompt": HEAD + BODY,
    "bare-behind-prose": f"Here is the function.\n\n{WHOLE}",
    "bare-amid-prose": f"Here is it:\n\n{WHOLE}\nThis function takes a list, and adds.\nThat's all.",
    "tabs": fenced(tabs(WHOLE)),
    "two-blanks": fenced(two(WHOLE)),
    "indented-as-a-whole": fenced(textwrap.indent(WHOLE, "    ")),
    "in-a-list": textwrap.indent(f"1. First:\n\n   {fenced(WHOLE).replace(chr(10), chr(10) + '   ')}", ""),
    "behind-a-list-marker": "- " + fenced(WHOLE).replace("\n", "\n  "),
    "py": fenced(WHOLE, "py"),
    "Python3": fenced(WHOLE, "Python3"),
    "braces": fenced(WHOLE, "{.python .numberLines}"),
    "title": fenced(WHOLE, 'python title="solution.py"'),
    "path": fenced(WHOLE, "src/solution.py"),
    "blank-before-the-name": fenced(WHOLE, " python"),
    "no-name": fenced(WHOLE, ""),
    "tildes": fenced(WHOLE, "python", "~~~"),
    "four-backticks": fenced(WHOLE, "python", "````"),
    "never-closed": f"So:\n```python\n{WHOLE}",
    "stray-fence-before": f"```\nSo here it is:\n{fenced(WHOLE)}",
    "never-closed-before": f"```python\ndef total(numbers):\nHmm, no.\n\n{fenced(WHOLE)}",
    "quoted-markdown": fenced(f"# Answer\n\n{fenced(WHOLE)}\n", "markdown", "````"),
    "fence-in-a-docstring": fenced(f'def total(numbers):\n    """Sums.\n\n```\ntotal([1])\n```\n    """\n{BODY}'),
    "fence-in-a-docstring-no-name": fenced(f'def total(numbers):\n    """S\n```python\nf()\n```\n    """\n{BODY}', ""),
    "fence-in-a-docstring-within": fenced(f'def total(numbers):\n    """S\n    ```\n    f()\n    ```\n    """\n{BODY}'),
    "crlf": f"So:\n{fenced(WHOLE)}\nDone.".replace("\n", "\r\n"),
    "last-of-two": f"{fenced(WHOLE.replace('return result', 'return 0'))}\nNo:\n{fenced(WHOLE)}",
    "usage-behind": f"{fenced(WHOLE)}\nUsage:\n{fenced('print(total([1, 2]))')}",
    "output-behind": f"{fenced(WHOLE)}\nThis prints\n{fenced('30', '')}",
    "shell-behind": f"{fenced(WHOLE)}\n{fenced('python solution.py', 'bash')}",
    "diff-behind": f"{fenced(WHOLE)}\n{fenced('-    return 0' + chr(10) + '+    return 1', 'diff')}",
    "other-language-behind": f"{fenced(WHOLE)}\n{fenced('function total() {}', 'js')}",
    "tests-behind": f"{fenced(WHOLE)}\n{fenced('def test_total():' + chr(10) + '    assert total([]) == 0')}",
    "thought-before": f"<think>\nPerhaps\n{fenced('def total(n): return 1')}\n</think>\n{fenced(WHOLE)}",
    "thought-begun-by-the-template": f"Perhaps\n{fenced('def total(n): return 1')}\n</think>\n\n{fenced(WHOLE)}",
    "thought-in-the-code": fenced(WHOLE + "\n\nEND = '</think>'\n"),
    "tags": f"[PYTHON]\n{WHOLE}[/PYTHON]\n",
    "begin-done": f"[BEGIN]\n{WHOLE}\n[DONE]\nmore",
    "empty-block-behind": f"{fenced(WHOLE)}\n```python\n```\n",
    "byte-order-mark": "\ufeff" + fenced(WHOLE),
}  # fmt: skip


@pytest.mark.parametrize("message", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_is_found_however_it_is_written(message: str) -> None:
    code = code_of(message, FUNCTION)
    assert run(code, [1, 2]) == 30, code
    assert code.endswith("\n")
    assert "\r" not in code


CLASSES = {
    "whole": "class Solution:\n    def total(self, numbers: List[int]) -> int:\n        return sum(numbers)\n",
    "method-only": "    def total(self, numbers: List[int]) -> int:\n        return sum(numbers)\n",
    "function": "import os\n\ndef total(numbers: List[int]) -> int:\n    return sum(numbers)\n",
    "body": "        return sum(numbers)",
    "body-at-the-margin": "answer = sum(numbers)\nreturn answer",
}


@pytest.mark.parametrize("code", CLASSES.values(), ids=CLASSES)
def test_a_method_is_answered_with_its_class_or_without(code: str) -> None:
    assert run(code_of(fenced(code), CLASS), [1, 2]) == 3


PROGRAMS = {
    "one": fenced(READS),
    "last-that-says-python": f"{fenced('n = 1', 'py')}\n{fenced(READS)}\n{fenced('x = 3', '')}",
    "no-name": f"{fenced(READS, '')}\nFor 3 that is\n{fenced('6', '')}\nand\n{fenced('not python', '')}",
    "sample-before": f"For\n{fenced('3', '')}\n{fenced(READS, '')}",
    "main-block": fenced(READS),
    "bare": READS,
    "bare-amid-prose": f"This doubles it.\n\n{READS}\nThat is all there is to it.",
    "tags": f"[PYTHON]\n{READS}[/PYTHON]",
    "indented": fenced(textwrap.indent(READS, "  ")),
    "crlf": fenced(READS).replace("\n", "\r\n"),
    "shell-behind": f"{fenced(READS)}\n{fenced('echo 3 | python3 x.py', 'sh')}",
}


@pytest.mark.parametrize("message", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_is_the_last_block_of_python(message: str) -> None:
    assert code_of(message, PROGRAM) == READS


def test_a_main_block_stays() -> None:
    whole = WHOLE + '\n\nif __name__ == "__main__":\n    print(total([1]))\n'
    assert code_of(fenced(whole), FUNCTION).endswith(whole)
    assert code_of(fenced(whole), PROGRAM) == whole


@pytest.mark.parametrize(
    "code",
    ['TEXT = """\n\n    \n\t\n"""\n' + READS, READS + "\n\n# end", 'x = "\\d\u2028"\n' + READS],
    ids=["blank-lines-in-a-string", "comment-at-the-end", "odd-characters"],
)
def test_code_is_taken_letter_for_letter(code: str) -> None:
    assert code_of(f"So:\n{fenced(code)}\n", PROGRAM) == code.rstrip("\n") + "\n"


def test_a_block_that_is_no_python_is_taken_when_it_says_that_it_is() -> None:
    """It fails at the tests, which say why, and not here."""
    assert code_of(fenced("def total(:"), FUNCTION) == "def total(:\n"
    assert code_of(fenced("def summed(x): return x"), FUNCTION) == "def summed(x): return x\n"
    assert code_of(fenced("print(1"), PROGRAM) == "print(1\n"


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("", "no code in the message"),
        ("I cannot do that.", "no code in the message"),
        ("Done", "no code in the message"),
        ("```python\n```", "no block in the message is Python"),
        (fenced("ls", "bash"), "no block in the message is Python"),
        (fenced("so it goes on", ""), "no block in the message is Python"),
        (f"<think>\n{fenced(WHOLE)}", "the reasoning in the message has no end"),
        (f"{fenced(WHOLE)}</think>", "no code in the message"),
        ("x" * 1_000_001, "1000001 characters"),
    ],
    ids=["empty", "prose", "word", "empty-block", "shell", "prose-block", "only-thought", "thought-at-the-end", "long"],
)
@pytest.mark.parametrize("answer", [FUNCTION, PROGRAM], ids=["function", "program"])
def test_a_message_without_code_says_why(message: str, says: str, answer: Answer) -> None:
    with pytest.raises(NoAnswer, match=says):
        code_of(message, answer)


@pytest.mark.parametrize(
    "message",
    [
        "```python\n" * 20_000,
        '```python\n"""\n' * 10_000,
        "```\n" * 100_000,
        fenced("(" * 50_000),
        fenced("x = " + "-" * 100_000 + "1"),
        "def total(:\n" * 20_000,
        "a\0b" + fenced("x\0y"),
        fenced("f'{" * 1000),
        "[PYTHON]\n" * 20_000,
        " " * 500_000 + "`" * 500_000,
        "<think>" * 100_000,
    ],
    ids=["opened", "strings", "fences", "deep", "signs", "lines", "nul", "f-strings", "tags", "blanks", "thoughts"],
)
@pytest.mark.parametrize("answer", [FUNCTION, PROGRAM], ids=["function", "program"])
def test_whatever_is_said_is_read_in_seconds(message: str, answer: Answer) -> None:
    started = time.monotonic()
    try:
        code_of(message, answer)
    except NoAnswer:
        pass
    assert time.monotonic() - started < 10


def test_what_was_shown_is_not_put_in_twice() -> None:
    tree = ast.parse(code_of(fenced(HEAD + BODY), FUNCTION))
    assert [type(node).__name__ for node in tree.body] == ["ImportFrom", "FunctionDef", "FunctionDef"]


def test_a_file_that_is_no_python_gets_the_last_block_of_any_language() -> None:
    answer = Answer(path="src/main.rs", entry_point="main")
    rust = 'fn main() {\n    println!("{}", 1);\n}\n'
    message = f"{fenced('let x = 1;', 'rust')}\n{fenced(rust, 'rust')}\nDone."
    assert code_of(message, answer) == rust
    with pytest.raises(NoAnswer, match="no block of code"):
        code_of(rust, answer)


def test_what_the_code_shown_does_is_done_for_an_answer_that_leaves_it_out() -> None:
    head = "import sys\nfrom math import *\nfrom typing import *\nsys.setrecursionlimit(9000)\n\n\nclass Depth:\n"
    answer = Answer(path="solution.py", entry_point="Depth", head=f"{head}    def of(self):\n")
    body = "    def of(self):\n        return floor(sys.getrecursionlimit() / 2)"
    own = f"import sys\nfrom typing import *\n\nclass Depth:\n{body}"
    code = code_of(fenced(own), answer)
    names: dict[str, Any] = {}
    limit = sys.getrecursionlimit()
    try:
        exec(code, names)  # noqa: S102 - our own text
        assert names["Depth"]().of() == 4500
    finally:
        sys.setrecursionlimit(limit)
    assert code.count("from typing import *") == 1
