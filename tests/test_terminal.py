from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codeenv.terminal import clean

CASES = {
    "plain": (b"a\tb\n\nc\n", "a\tb\n\nc\n"),
    "empty": (b"", ""),
    "crlf": (b"a\r\nb\r\r\nc\r", "a\nb\nc"),
    "overwrite-part": (b"abc\rX", "Xbc"),
    "overwrite-longer": (b"ab\rwxyz\n", "wxyz\n"),
    "overwrite-thrice": (b"abcdef\rxyzw\rAB\r\n", "ABzwef\n"),
    "progress-erase": (b"\r\x1b[2K  1%\r\x1b[2K 50%\r\x1b[2K100%\n", "100%\n"),
    "progress-spaces": (b"downloading 99%\rdone           \n", "done           \n"),
    "erase-to-end": (b"abcdef\rxy\x1b[K\n", "xy\n"),
    "erase-to-end-0": (b"abcdef\rxy\x1b[0K\n", "xy\n"),
    "erase-to-start": (b"abcdef\b\b\b\x1b[1KX", "   Xef"),
    "erase-all-keeps-column": (b"abc\x1b[2Kd", "   d"),
    "erase-then-nothing": (b"working...\r\x1b[K\nnext", "\nnext"),
    "backspace": (b"12\b\b34\b5", "35"),
    "backspace-at-start": (b"\b\bab", "ab"),
    "overstrike": (b"N\bNA\bA_\bx", "NAx"),
    "column": (b"abc\x1b[1GX\x1b[3GZ", "XbZ"),
    "column-erase": (b"\x1b[2K\x1b[1Gspin\x1b[2K\x1b[Gdone", "done"),
    "forward-back": (b"ab\x1b[3C|\x1b[2D!", "ab  !|"),
    "forward-has-a-ceiling": (b"\x1b[9999Cx", " " * 200 + "x"),
    "colours": (b"\x1b[1;31mred\x1b[0m \x1b[38;5;12mblue\x1b[m", "red blue"),
    "grep-keeps-tabs": (b"\x1b[01;31m\x1b[Kdef\x1b[m\x1b[K\tf\n", "def\tf\n"),
    "tab-overwritten": (b"abc\tdef\rXXXX", "XXXX    def"),
    "tab-kept-beside-overwrite": (b"abc\tdef\rX", "Xbc\tdef"),
    "tab-over-text-moves": (b"abcdefghij\r\tX", "abcdefghXj"),
    "cursor-up": (b"a\n\x1b[1A\x1b[2Kb\n", "a\nb\n"),
    "screen": (b"\x1b[?25l\x1b[2J\x1b[Hhi\x1b[?25h\x1bc", "hi"),
    "title-bel": (b"\x1b]0;title\x07hi", "hi"),
    "hyperlink-st": (b"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"),
    "string-not-ended": (b"\x1b]0;lost\nkept\n", "0;lost\nkept\n"),
    "dcs": (b"\x1bP1$r0m\x1b\\x", "x"),
    "charset": (b"\x1b(Bx\x1b7\x1b8\x1b=", "x"),
    "unfinished": (b"x\x1b[12", "x"),
    "unfinished-esc": (b"x\x1b", "x"),
    "esc-makes-no-new-sequence": (b"abc\x1b\x1b[m[2K", "abc[2K"),
    "huge-parameter": (b"a\x1b[" + b"9" * 5000 + b"Kb", "ab"),
    "controls": (b"\x00\x07\x0b\x0c\x7f\xc2\x85\xc2\x9b", "\\x00\\x07\\x0b\\x0c\\x7f\\x85\\x9b"),
    "not-utf8": (b"a\xff\xc3(", "a\ufffd\ufffd("),
    "surrogate": (b"\xed\xa0\x80", "\ufffd" * 3),
    "noncharacters": (b"\xef\xbf\xbe\xef\xbf\xbf\xef\xb7\x90", "\ufffd" * 3),
    "unicode": ("é漢🎉\u2028".encode(), "é漢🎉\u2028"),
}


@pytest.mark.parametrize(("data", "shown"), CASES.values(), ids=CASES.keys())
def test_shows_what_a_terminal_shows(data: bytes, shown: str) -> None:
    assert clean(data) == shown


def emulate(line: str) -> str:
    """The same as a real terminal does it: cell by cell, forwards. A tab writes blanks here."""
    cells: dict[int, str] = {}
    column = width = 0
    for step in re.findall(r"\x1b\[\d*[A-Z]|[^\x1b]", line):
        if step == "\r":
            column = 0
        elif step == "\b":
            column = max(0, column - 1)
        elif step == "\t":
            stop = column + 8 - column % 8
            cells |= {c: " " for c in range(column, stop) if column >= width}
            column = stop
        elif step[-1] in "KGCD" and len(step) > 1:
            number = int(step[2:-1] or 0)
            erased = {0: lambda c: c >= column, 1: lambda c: c <= column, 2: lambda c: True}  # noqa: B023
            if step[-1] == "K":
                cells = {c: text for c, text in cells.items() if not erased[number](c)}
            else:
                n = max(1, number)
                column = {"G": n - 1, "C": column + n, "D": max(0, column - n)}[step[-1]]
        else:
            cells[column] = step
            column += 1
        width = max(width, column if step[0] not in "\r\b\x1b" else 0)
    return "".join(cells.get(c, " ") for c in range(max(cells, default=-1) + 1))


MOVES = ["\r", "\b", "\t", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[G", "\x1b[4G", "\x1b[2C", "\x1b[D"]
steps = st.sampled_from([*MOVES, "a", "bc", "XYZ"])


@given(st.lists(steps, max_size=20).map("".join))
@settings(max_examples=500, deadline=None)
def test_agrees_with_an_emulator(line: str) -> None:
    # Trailing blanks that nobody wrote are nothing to compare.
    assert clean(line.encode()).expandtabs(8).rstrip(" ") == emulate(line).rstrip(" ")


SCRAPS = [b"\n", b"\x1b", b"\x1b[", b"\x1b]0;", b"\x07", b"\\", b"[K", b"\xe2\x82", b"\xac"]
pieces = st.sampled_from([*SCRAPS, *map(str.encode, MOVES)])


@given(st.binary() | st.lists(pieces | st.binary(max_size=3), max_size=40).map(b"".join))
@example(b"\x1b" * 3 + b"[K\x1b[\x1b[2Kx")
@settings(max_examples=300, deadline=None)
def test_gives_text_that_travels(data: bytes) -> None:
    text = clean(data)
    assert json.loads(json.dumps(text)) == text == text.encode().decode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", text)
    assert clean(text.encode()) == text


HOSTILE = [
    b"\r", b"\rX", b"X\b", b"X\b\r\t", b"\x1b", b"\x1b[", b"\x1b[1", b"\x1b]", b"\x1bP", b"\x1b[2K", b"\x1b[Kx",
    b"\x1b[1Kx", b"\x1b[2Kx\b\bx", b"\x1b[9999Cx", b"\t\x1b[9G", b"\na\bb", b"\r\nx\r\t", b"\x00", b"\xff",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
@pytest.mark.parametrize("before", [b"", b"y" * 50_000], ids=["alone", "after-a-long-line"])
def test_is_linear(unit: bytes, before: bytes) -> None:
    data = (before + unit * 100_000)[:100_000]
    # CPU time, the better of two: 1 MB may take a second. Anything quadratic would take minutes.
    times: list[float] = []
    for _ in range(2):
        started = time.process_time()
        clean(data)
        times.append(time.process_time() - started)
    assert min(times) < 0.2
