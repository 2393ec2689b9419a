import ast
import dataclasses
import json
import pickle
from pathlib import Path

import pytest

from meterlog.digest import digest

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


def fed(lines):
    from meterlog.tally import Tally

    tally = Tally()
    for line in lines:
        tally.feed(line)
    return tally


def reported(tally):
    from meterlog.report import report

    return report(tally)


@pytest.mark.parametrize("name", [name for name in GOLDEN if not name.startswith("random")])
def test_digest_is_unchanged(name):
    assert digest(GOLDEN[name]["lines"]) == GOLDEN[name]["report"]


def test_digest_is_unchanged_for_random_logs():
    for name, case in GOLDEN.items():
        assert digest(iter(case["lines"])) == case["report"], name


def test_two_pieces_at_every_cut():
    for name, case in GOLDEN.items():
        lines = case["lines"]
        whole = fed(lines)
        for cut in range(len(lines) + 1):
            left = fed(lines[:cut])
            left.merge(fed(lines[cut:]))
            assert reported(left) == case["report"], (name, cut)
            assert left == whole, (name, cut)


@pytest.mark.parametrize("right_first", [False, True], ids=["left-grouping", "right-grouping"])
def test_one_piece_per_line(right_first):
    for name, case in GOLDEN.items():
        pieces = [fed([line]) for line in case["lines"]] + [fed([])]
        while len(pieces) > 1:
            if right_first:
                last = pieces.pop()
                pieces[-1].merge(last)
            else:
                pieces[0].merge(pieces.pop(1))
        assert reported(pieces[0]) == case["report"], name


def test_three_pieces_grouped_to_the_right():
    for name, case in GOLDEN.items():
        lines = case["lines"]
        third = len(lines) // 3
        for shift in range(third + 1):
            a, b, c = fed(lines[:third]), fed(lines[third : third + shift]), fed(lines[third + shift :])
            b.merge(c)
            a.merge(b)
            assert reported(a) == case["report"], (name, shift)


def test_feeding_goes_on_after_merging():
    for name, case in GOLDEN.items():
        lines = case["lines"]
        third = len(lines) // 3
        tally = fed(lines[:third])
        tally.merge(fed(lines[third : 2 * third]))
        for line in lines[2 * third :]:
            tally.feed(line)
        assert reported(tally) == case["report"], name


def test_merge_leaves_other_alone_and_independent():
    lines = GOLDEN["long"]["lines"]
    left, right = fed([]), fed(lines)
    left.merge(right)
    assert right == fed(lines)
    right.feed("north 999999")
    right.feed("broken")
    right.feed("= south")
    assert reported(left) == GOLDEN["long"]["report"]
    right = fed(lines)
    before = reported(right)
    left.merge(right)
    left.feed("north 1000000")
    left.feed("broken")
    assert reported(right) == before


def test_merge_with_itself():
    lines = ["a 1", "a 2", "oops", "b 5", "# note", "b 4"]
    tally = fed(lines)
    tally.merge(tally)
    assert reported(tally) == reported(fed(lines + lines))
    assert tally == fed(lines + lines)


def test_copy():
    lines = GOLDEN["long"]["lines"]
    tally = fed(lines)
    twin = tally.copy()
    assert twin == tally and twin is not tally
    twin.feed("north 1")
    twin.feed("bad")
    twin.merge(tally)
    assert reported(tally) == GOLDEN["long"]["report"]


def test_equality_tells_different_states():
    assert fed([]) == fed([])
    assert fed(["a 1"]) != fed(["a 2"])
    assert fed(["a 1"]) != fed(["a 1", ""])
    assert fed(["a 5", "a 7", "a 6"]) != fed(["a 5", "a 7", "a 7"])
    one, two = fed(["a 1", "a 3", "a 2", "a 2"]), fed(["a 1", "a 3", "a 2", "a 3"])
    assert one != two
    assert fed([]) != 0 and fed([]) != []
    with pytest.raises(TypeError):
        hash(fed([]))


def test_state_does_not_grow_with_lines():
    lines = [f"{'ab'[n % 2]} {n * 37 % 1009}" for n in range(3000)] + ["rubbish"] * 3000 + ["= a", "a 3"] * 500
    small, large = fed(lines[:10] + ["rubbish"] * 10), fed(lines)
    large.merge(fed(lines))
    large = pickle.loads(pickle.dumps(large))
    assert len(pickle.dumps(large)) < len(pickle.dumps(small)) + 400
    assert reported(large) == digest(lines + lines)


def test_reporting_changes_nothing():
    tally = fed(GOLDEN["long"]["lines"])
    first = reported(tally)
    first.append("x")
    assert reported(tally) == GOLDEN["long"]["report"] and tally == fed(GOLDEN["long"]["lines"])


def test_parse_line():
    from meterlog.reading import Reading, Reset, parse_line

    assert parse_line("  North\t+0012 \n") == Reading("NORTH", 12)
    assert parse_line("= North") == Reset("NORTH")
    assert parse_line("  # a b c d") is None and parse_line(" \t") is None
    assert parse_line("=x -3") == Reading(meter="=X", value=-3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        parse_line("a 1").value = 2


@pytest.mark.parametrize(
    "line, reason",
    [("=", "mark"), ("= a b", "mark"), ("a", "shape"), ("a 1 2", "shape"), ("a 1.5", "value"), ("a x", "value")],
    ids=str,
)
def test_bad_lines(line, reason):
    from meterlog.reading import BadLine, parse_line

    with pytest.raises(BadLine) as info:
        parse_line(line)
    assert isinstance(info.value, ValueError) and info.value.reason == reason


def test_structure():
    for path in Path("meterlog").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not any(isinstance(node, ast.Global) for node in ast.walk(tree)), path
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                assert not isinstance(node.value, (ast.List, ast.Dict, ast.Set)), f"mutable state in {path}"
    tree = ast.parse(Path("meterlog/digest.py").read_text(encoding="utf-8"))
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "digest")
    assert function.end_lineno - function.lineno <= 15
