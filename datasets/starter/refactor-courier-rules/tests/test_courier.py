import ast
import dataclasses
import json
from pathlib import Path

import pytest

import courier.quote
from courier.quote import quote

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))
NAMES = ["base", "bulky", "heavy", "remote", "insurance", "express", "discount", "minimum", "rounding"]


def good():
    return [case for case in GOLDEN if "cents" in case]


def bad():
    return [case for case in GOLDEN if "error" in case]


def test_quote_prices_and_side_effects():
    for case in good():
        parcel = dict(case["parcel"])
        assert quote(parcel) == case["cents"], case["parcel"]
        assert parcel == case["after"], case["parcel"]


def test_quote_errors_and_side_effects():
    for case in bad():
        parcel = dict(case["parcel"])
        with pytest.raises(Exception) as info:
            quote(parcel)
        assert [type(info.value).__name__, str(info.value)] == case["error"], case["parcel"]
        assert parcel == case["after"], case["parcel"]


def test_quote_keeps_key_order():
    parcel = {"grams": 5, "zone": " Town "}
    quote(parcel)
    assert list(parcel) == ["grams", "zone", "quoted"]


def test_a_failed_requote_keeps_the_old_quote():
    parcel = {"zone": "ISLAND", "grams": 500}
    quote(parcel)
    before = parcel["quoted"]
    parcel.update(zone="Town", grams=40000)
    with pytest.raises(ValueError, match="too heavy"):
        quote(parcel)
    assert parcel == {"zone": "city", "grams": 40000, "quoted": before}


def test_make_job():
    from courier.quote import make_job
    from courier.rules import Job

    parcel = {"zone": " Island", "grams": 5, "size": [2, 3, 4], "value": None, "express": 1, "account": ""}
    before = dict(parcel)
    job = make_job(parcel)
    assert job == Job(zone="isle", grams=5, volume=24, value=0, express=True, account=None)
    assert job.express is True
    assert parcel == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        job.zone = "city"


def test_make_job_errors():
    from courier.quote import explain, make_job

    for case in bad():
        for function in (make_job, explain):
            parcel = dict(case["parcel"])
            with pytest.raises(Exception) as info:
                function(parcel)
            assert [type(info.value).__name__, str(info.value)] == case["error"], case["parcel"]
            assert parcel == case["parcel"], f"{function.__name__} modified the parcel"


def test_price_agrees():
    from courier.quote import make_job, price

    for case in good():
        assert price(make_job(case["parcel"])) == case["cents"], case["parcel"]


def test_explain_adds_up_and_is_pure():
    from courier.quote import explain

    for case in good():
        parcel = dict(case["parcel"])
        steps = explain(parcel)
        assert parcel == case["parcel"]
        assert sum(change for _, change in steps) == case["cents"], case["parcel"]
        assert [name for name, _ in steps] == case["rules"], case["parcel"]
        assert all(type(change) is int for _, change in steps)


@pytest.mark.parametrize(
    "parcel, steps",
    [
        ({"zone": "city", "grams": 1}, [("base", 390), ("minimum", 110), ("rounding", 0)]),
        ({"zone": "land", "grams": 1, "account": "X1"}, [("base", 650), ("discount", 0), ("minimum", 0), ("rounding", 0)]),
        (
            {"zone": "city", "grams": 1, "account": "G", "express": True},
            [("base", 390), ("express", 195), ("discount", -70), ("rounding", 0)],
        ),
        (
            {"zone": "isle", "grams": 2001, "value": 10001, "express": True, "account": "S"},
            [("base", 1190), ("heavy", 70), ("remote", 900), ("insurance", 100), ("discount", 0), ("minimum", 0), ("rounding", 0)],
        ),
        (
            {"zone": "land", "grams": 30000, "size": [50, 40, 100], "express": True},
            [("base", 650), ("bulky", 630), ("heavy", 2970), ("express", 1400), ("minimum", 0), ("rounding", 0)],
        ),
    ],
    ids=["minimum", "plain-account", "gold-express", "isle-express", "express-cap"],
)
def test_explain_exactly(parcel, steps):
    from courier.quote import explain

    assert explain(parcel) == steps


def test_rule_table():
    from courier.rules import RULES, Rule

    assert isinstance(RULES, tuple) and [rule.name for rule in RULES] == NAMES
    assert all(isinstance(rule, Rule) for rule in RULES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        RULES[0].name = "x"


def test_rules_work_on_their_own():
    from courier.rules import RULES, Job

    rules = {rule.name: rule for rule in RULES}
    job = Job("land", 2600, 60001, 30000, False, "Gilt")
    assert rules["base"].price(job, 1000) == 1650
    assert rules["bulky"].applies(job) and rules["bulky"].price(job, 0) == 370
    assert rules["heavy"].price(job, 7) == 97
    assert rules["insurance"].price(job, 0) == 100
    assert rules["discount"].price(job, 999) == 880
    assert not rules["minimum"].applies(job) and not rules["express"].applies(job)
    assert [rules["rounding"].price(job, cents) for cents in (0, 1, 5, 9)] == [0, 5, 5, 10]
    fast = Job("land", 1, 0, 0, True, None)
    assert rules["express"].price(fast, 4001) == 5650, "the cap counts from the base price of the zone"
    assert rules["express"].price(fast, 201) == 301


def test_applies_gives_bools():
    from courier.quote import make_job
    from courier.rules import RULES

    for case in good():
        job = make_job(case["parcel"])
        assert all(isinstance(rule.applies(job), bool) for rule in RULES)


def test_custom_rules():
    from courier.quote import explain, make_job, price
    from courier.rules import RULES, Rule

    fuel = Rule("fuel", lambda job: job.grams > 100, lambda job, cents: cents + cents // 10)
    parcel = {"zone": "land", "grams": 200}
    rules = [RULES[0], fuel, RULES[-1]]
    assert price(make_job(parcel), rules) == 715
    assert explain(parcel, iter(rules)) == [("base", 650), ("fuel", 65), ("rounding", 0)]
    assert explain(parcel, rules=()) == [] and price(make_job(parcel), ()) == 0
    without_base = [rule for rule in RULES if rule.name != "base"]
    assert price(make_job({"zone": "land", "grams": 1, "express": True}), without_base) == 500


def test_structure_and_no_state():
    assert not hasattr(courier.quote, "LAST")
    for path in Path("courier").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not isinstance(node, ast.Global), path
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                assert node.end_lineno - node.lineno + 1 <= 15, f"{path}:{getattr(node, 'name', 'lambda')} is too long"
