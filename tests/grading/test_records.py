"""Which tests are expected, and what was recorded of them."""

from __future__ import annotations

from codeenv.grading.records import Record, expected_tests, records_in, results_of
from tests.episodes import encoded
from tests.grading.test_pytest_kind import STYLES


def test_expected_tests_are_read_and_not_run() -> None:
    files = encoded(
        {
            "test_styles.py": STYLES,
            "deep/test_more.py": "def test_more(): pass\nassert False\n",
            "other_test.py": "def test_x(): pass",
            "conftest.py": "def test_no(): pass",
            "test_new_syntax.py": "def test_x(:",
            "test_data.txt": "def test_no(): pass",
        }
    )
    assert expected_tests(files) == (
        "deep/test_more.py::test_more",
        "other_test.py::test_x",
        "test_styles.py::test_many",
        "test_styles.py::test_product",
        "test_styles.py::TestPlain::test_one",
        "test_styles.py::Adding::test_case",
        "test_styles.py::test_größe",
    )


def test_only_lines_with_the_token_are_records() -> None:
    lines = [
        b'T{"kind": "start"}',
        b'{"kind": "end"}',
        b'xT{"kind": "end"}',
        b'T{"kind": "other"}',
        b'T{"kind": "test"',
        b"",
    ]
    assert records_in(b"\n".join(lines), b"T") == [Record(kind="start")]


def test_what_is_expected_and_was_not_heard_of_did_not_pass() -> None:
    records = [
        Record(kind="collected", ids=("a::t[1]", "a::t[2]", "a::u")),
        Record(kind="test", id="a::t[1]", outcome="passed"),
        Record(kind="test", id="a::u", outcome="skipped", message="why"),
        Record(kind="broken", message="boom"),
    ]
    results = results_of(records, ("a::t", "a::t[1]", "a::t[3]", "a::v"), "late")
    missing = "did not run: late: boom"
    assert [(result.id, result.passed, result.message) for result in results] == [
        ("a::t[1]", True, ""),
        ("a::t[2]", False, missing),
        ("a::u", False, "skipped: why"),
        ("a::t[3]", False, missing),
        ("a::v", False, missing),
    ]
