import ast
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dues.letter import render_letter

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))
MODULES = ["footnotes", "letter", "money", "postings", "render", "totals"]
ROOT = Path("dues")


def golden(prefix):
    cases = {name: case for name, case in GOLDEN.items() if name.startswith(prefix)}
    assert cases
    return cases


@pytest.mark.parametrize("group", ["layout", "order", "notes", "rebate", "balance", "mixed"])
def test_same_bytes(group):
    for name, case in golden(group).items():
        assert render_letter(case["member"], case["postings"]) == case["text"], name


def test_same_errors():
    for name, case in golden("error").items():
        with pytest.raises(Exception) as info:
            render_letter(case["member"], case["postings"])
        assert type(info.value).__name__ == case["error"], name
        assert str(info.value) == case["message"], name


def test_accepts_one_shot_iterator_and_leaves_input_alone():
    case = GOLDEN["mixed-0"]
    member, postings = dict(case["member"]), list(case["postings"])
    assert render_letter(member, iter(postings)) == case["text"]
    assert render_letter(member, tuple(postings)) == case["text"]
    assert member == case["member"] and postings == case["postings"]


def test_letter_within_a_letter():
    case = GOLDEN["notes-0"]

    def postings():
        for raw in case["postings"]:
            render_letter({"name": "x", "since": 1}, ["1;fee;100;some other long note here"])
            yield raw

    assert render_letter(case["member"], postings()) == case["text"]


def test_parse_posting():
    from dues.postings import Posting, parse_posting

    assert parse_posting(" 7 ; PAY ; -20 ;  a  b;c ") == Posting(7, "payment", -20, "a b;c")
    assert parse_posting("-1;Fine;0") == Posting(day=-1, kind="fine", cents=0, note="")
    with pytest.raises(ValueError, match="^bad posting: '1;fee'$"):
        parse_posting("1;fee")
    with pytest.raises(dataclasses.FrozenInstanceError):
        parse_posting("1;fee;2").day = 3


def test_footnotes_are_independent():
    from dues.footnotes import Footnotes

    one, two = Footnotes(), Footnotes()
    assert one.mark("") == "" and one.lines() == []
    assert one.mark("twelve chars") == " (twelve chars)"
    assert one.mark("thirteen char") == " [1]"
    assert one.mark("another long one") == " [2]"
    assert one.mark("thirteen char") == " [1]"
    assert two.mark("another long one") == " [1]"
    assert one.lines() == ["[1] thirteen char", "[2] another long one"]
    assert two.lines() == ["[1] another long one"]


def test_totals():
    from dues.postings import Posting
    from dues.totals import Totals, compute_totals

    rows = [Posting(1, "fee", 1010, ""), Posting(1, "fine", 90, ""), Posting(2, "payment", 300, "")]
    assert compute_totals({"name": "", "since": 2001}, rows) == Totals(charged=1100, paid=300, rebate=0)
    assert compute_totals({"since": 2000, "family": True}, rows) == Totals(1100, 300, 152)
    assert compute_totals({"since": 1999, "family": True}, rows) == Totals(1100, 300, 652)
    assert Totals(5, 7, 1).balance == -3
    with pytest.raises(dataclasses.FrozenInstanceError):
        Totals(1, 2, 3).paid = 4


@pytest.mark.parametrize(
    "cents, text",
    [(0, "0.00"), (5, "0.05"), (-5, "-0.05"), (99999, "999.99"), (100000, "1'000.00"), (-123456789, "-1'234'567.89")],
    ids=str,
)
def test_format_cents(cents, text):
    from dues.money import format_cents

    assert format_cents(cents) == text


def test_render_prints_the_totals_it_is_given():
    from dues.postings import Posting
    from dues.render import render
    from dues.totals import Totals

    text = render({"name": " Ann "}, [Posting(3, "payment", 5, ""), Posting(3, "fee", 100, "")], Totals(700, 50, 20))
    assert text == (
        "Dear Ann,\n\n  3  fee             1.00\n     payment        -0.05\n" + "-" * 25 + "\n"
        "     charged         7.00\n     paid           -0.50\n     rebate         -0.20\n\n"
        "Please pay 6.30 by the end of the month.\n"
    )


def test_no_global_statement_and_short_functions():
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not isinstance(node, ast.Global), f"global in {path}"
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = node.end_lineno - node.lineno + 1
                assert length <= 25, f"{path}:{node.name} has {length} lines"


def test_no_module_state_changes():
    import importlib

    modules = [importlib.import_module(f"dues.{name}") for name in MODULES]

    def snapshot():
        return {
            (module.__name__, name): repr(value)
            for module in modules
            for name, value in vars(module).items()
            if isinstance(value, (list, dict, set, int, str)) and not name.startswith("__")
        }

    before = snapshot()
    for case in GOLDEN.values():
        try:
            render_letter(case["member"], case["postings"])
        except Exception:
            pass
    assert snapshot() == before


def test_each_module_imports_alone():
    code = "import importlib, sys\nfor name in sys.argv[1:]:\n" \
        "    for loaded in [m for m in sys.modules if m.split('.')[0] == 'dues']: del sys.modules[loaded]\n" \
        "    importlib.import_module('dues.' + name)\n"
    done = subprocess.run([sys.executable, "-c", code, *MODULES], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
