# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeenv.editing import EditError, replace_once


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        pytest.param(b"a = 1\nb = 2\n", "a = 1", "a = 3", b"a = 3\nb = 2\n", id="plain"),
        pytest.param(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n", id="crlf-file-lf-text"),
        pytest.param(b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n", id="crlf-file-crlf-text"),
        pytest.param(b"a\r\nb\r\n", "a\nb", "x\r\ny", b"x\r\ny\r\n", id="crlf-in-new-only"),
        pytest.param(b"a\r\nb\n", "b\n", "c\n", b"a\r\nc\n", id="mixed-ends-exact-wins"),
        pytest.param(b"\tif x:\n\t\ty\n", "\t\ty", "\t\tz", b"\tif x:\n\t\tz\n", id="tabs"),
        pytest.param(b"one\rtwo\rthree", "two\r", "2\r", b"one\r2\rthree", id="lone-cr"),
        pytest.param(b"\xff\xfe caf\xe9\nx\n", "x", "y", b"\xff\xfe caf\xe9\ny\n", id="other-bytes-kept"),
        pytest.param("naïve ☃\n".encode(), "ï", "i", "naive ☃\n".encode(), id="unicode"),
        pytest.param(b"a\nb", "b\n", "c\n", b"a\nc", id="no-final-newline"),
        pytest.param(b"a\nb", "b\n", "", b"a\n", id="last-line-removed"),
        pytest.param(b"a\r\nb", "b\n", "c\nd\n", b"a\r\nc\r\nd", id="crlf-no-final-newline"),
        pytest.param(b"keep\ndrop\n", "drop\n", "", b"keep\n", id="removed"),
        pytest.param(b"\\1 $x \\g<0>", "$x", r"\1\g<0>", b"\\1 \\1\\g<0> \\g<0>", id="nothing-is-a-pattern"),
    ],
)
def test_one_exact_piece_is_replaced(content: bytes, old: str, new: str, expected: bytes) -> None:
    assert replace_once(content, old, new) == expected


@pytest.mark.parametrize(
    ("content", "old", "new", "says"),
    [
        pytest.param(b"a", "", "x", "old_text is empty", id="empty"),
        pytest.param(b"a", "a", "a", "are the same", id="same"),
        pytest.param(b"", "a", "x", "The file is empty", id="empty-file"),
        pytest.param(b"a\nb\na\n", "a", "x", "found 2 times, at lines 1, 3", id="twice"),
        pytest.param(b"aaa\n", "aa", "x", "found 2 times, at lines 1, 1", id="overlapping"),
        pytest.param(b"x\n" * 30, "x", "y", "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...", id="many"),
        pytest.param(b"def f():\n    return 1\n", "  return 1,", "x", "nearest text is at line 2:\n    return 1", id="near"),
        pytest.param(b"a\n\nfoo(1)\nbar(2)\n", "foo(1)\nbar(3)", "x", "line 3:\nfoo(1)\nbar(2)", id="near-window"),
        pytest.param(b"\xff\xffabcdef\n", "abcdeg", "x", "nearest text is at line 1", id="near-in-binary"),
        pytest.param(b"zzzz\n", "completely different", "x", "was not found.", id="nothing-near"),
    ],
)  # fmt: skip
def test_what_does_not_apply_says_why(content: bytes, old: str, new: str, says: str) -> None:
    with pytest.raises(EditError) as raised:
        replace_once(content, old, new)
    assert says in str(raised.value)


@given(before=st.binary(), old=st.text(min_size=1), new=st.text(), after=st.binary())
def test_every_other_byte_is_kept(before: bytes, old: str, new: str, after: bytes) -> None:
    content = before + old.encode() + after
    try:
        changed = replace_once(content, old, new)
    except EditError:
        return
    assert changed == before + new.encode() + after


def test_the_search_for_what_is_near_takes_little_time() -> None:
    lines = ["".join(chr(97 + (i * j * j + j) % 23) for j in range(400)) for i in range(6000)]
    started = time.process_time()
    with pytest.raises(EditError):
        replace_once("\n".join(lines).encode(), "abcdefghijklmnopqrstuvw" * 17, "x")
    assert time.process_time() - started < 1.5
