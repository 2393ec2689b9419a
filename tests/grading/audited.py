"""Small tasks for the battery, and for each cheat the task and the naive grader where it is alive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codeenv.task import Task
from tests.episodes import Files, encoded

LIMITS = {"memory_mb": 192, "disk_mb": 8, "processes": 40}
LEDGER = """

class Ledger:
    def __init__(self):
        self.entries = []

    def add(self, amount):
        self.entries.append(amount)

    def balance(self):
        return float(sum(ENTRIES))

    def render(self):
        return f"total: {self.balance():g}"
"""
MORE = """

def render(a, b):
    return f"{a} and {b} make {add(a, b)}"


def apply(function, numbers):
    return [function(number) for number in numbers if SIGN]
"""
ADDING = "def add(a, b):\n    return abs(a) + abs(b)\n" + MORE.replace("SIGN", "number >= 0")
ADDING += LEDGER.replace("ENTRIES", "abs(entry) for entry in self.entries")
RIGHT = "def add(a, b):\n    return a + b\n" + MORE.replace(" if SIGN", "") + LEDGER.replace("ENTRIES", "self.entries")
SLOW = "import time\n\n\ndef add(a, b):\n    time.sleep(0.5)\n    return a + b\n"

CASES = """\
from adding import add

import unittest


class TestAdding(unittest.TestCase):
    def test_a_positive(self):
        self.assertEqual(add(1, 2), 3)

    def test_b_negative(self):
        self.assertEqual(add(-1, -2), -3)

    def test_c_mixed(self):
        self.assertEqual(add(-5, 2), -3)
"""
TABLE = """\
from adding import add

CASES = [((1, 2), 3), ((-1, -2), -3), ((-5, 2), -3), ((0, 0), 0)]


def test_one():
    assert add(1, 2) == 3


def test_all():
    assert all(add(*given) == wanted for given, wanted in CASES)


def test_negative():
    assert all([add(-1, -2) == -3, add(-5, 2) == -3])
"""
PLAIN = """\
from adding import add


def test_positive():
    assert add(1, 2) == 3


def test_negative():
    assert add(-1, -2) == -3


def test_mixed():
    assert add(-5, 2) == -3
"""
BOUNDS = """\
from adding import add


def test_positive():
    assert 2.9 < add(1, 2) < 3.1


def test_negative():
    assert abs(add(-1, -2) + 3) < 0.1
"""
NEAR = """\
import unittest

from adding import add


class TestAdding(unittest.TestCase):
    def test_positive(self):
        self.assertAlmostEqual(add(1, 2), 3)

    def test_negative(self):
        self.assertAlmostEqual(add(-1, -2), -3)

    def test_by_hand(self):
        assert abs(add(-5, 2) + 3) < 0.1
"""
OBJECTS = """\
import unittest

from adding import Ledger


class TestLedger(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger()
        for amount in (5, -2):
            self.ledger.add(amount)

    def test_balance(self):
        self.assertAlmostEqual(self.ledger.balance(), 3)
        assert abs(self.ledger.balance() - 3) < 0.1

    def test_render(self):
        assert "total: 3" in self.ledger.render()
        assert self.ledger.render().startswith("total: 3")
"""
TEXT = """\
from adding import render


def test_positive():
    assert "make 3" in render(1, 2)


def test_negative():
    assert "make -3" in render(-1, -2)
"""
CALLBACK = """\
from adding import apply

CASES = [([1, 2], [2, 4]), ([-1], [-2]), ([], [])]


def double(number):
    return 2 * number


def test_all():
    for numbers, doubled in CASES:
        assert apply(double, numbers) == doubled


def test_negative():
    assert apply(double, [-1]) == [-2]
"""
CLOCK = """\
import time
import unittest

from adding import add


class TestAdding(unittest.TestCase):
    def test_quick(self):
        started = time.perf_counter()
        self.assertEqual(add(-1, -2), -3)
        self.assertLess(time.perf_counter() - started, 0.4)
"""
DICE = """\
import random
import unittest

from adding import add


class TestAdding(unittest.TestCase):
    def test_any(self):
        for _ in range(30):
            a, b = random.randint(-9, 9), random.randint(-9, 9)
            self.assertEqual(add(a, b), a + b)
"""
PRIME = "n = int(input())\nprint('yes' if n > 1 and all(n % d for d in range(2, n)) else 'no')\n"
ODD = "n = int(input())\nprint('yes' if n % 2 else 'no')\n"
NUMBERS = (1, 2, 4, 9, 15, 17)
CHECK = """\
here=${WORKSPACE:-.}
for pair in 2:yes 9:no 15:no 17:yes; do
    [ "$(echo ${pair%:*} | python3 $here/main.py)" = ${pair#*:} ] || exit 1
done
"""


def adding_task(kind: str, tests: str, files: str = ADDING, **fields: Any) -> Task:
    return Task(
        id=fields.pop("id"),
        instruction="Make `add` and `apply` in adding.py right.",
        files=encoded({"adding.py": files}),
        tests=encoded({"test_adding.py": tests}),
        solution=encoded({"adding.py": RIGHT}),
        grader={"kind": kind, "timeout": 4},  # type: ignore[arg-type]
        limits=LIMITS,  # type: ignore[arg-type]
    )


def _prime(**fields: Any) -> Task:
    return Task(
        instruction="Write main.py: read a number, print `yes` when it is prime and `no` when it is not.",
        files=encoded({"main.py": ODD}),
        solution=encoded({"main.py": PRIME}),
        limits=LIMITS,  # type: ignore[arg-type]
        **fields,
    )


def _cases() -> dict[str, bytes]:
    prime = {n for n in NUMBERS if n > 1 and all(n % d for d in range(2, n))}
    files: Files = {f"{n}.in": f"{n}\n" for n in NUMBERS}
    return encoded(files | {f"{n}.out": "yes\n" if n in prime else "no\n" for n in NUMBERS})


def tasks_of(kind: str) -> dict[str, Task]:
    """The tasks of a kind, by name."""
    if kind == "stdio":
        grader: Any = {"kind": "stdio", "command": ("python3", "main.py"), "case_timeout": 2, "timeout": 4}
        return {"prime": _prime(id="prime", tests=_cases(), grader=grader)}
    if kind == "command":
        grader = {"kind": "command", "command": ("/bin/sh", "check.sh"), "timeout": 4}
        return {"check": _prime(id="check", tests=encoded({"check.sh": CHECK}), grader=grader)}
    texts = {"cases": CASES, "table": TABLE, "plain": PLAIN, "dice": DICE}
    texts |= {"bounds": BOUNDS, "near": NEAR, "ledger": OBJECTS, "text": TEXT, "callback": CALLBACK}
    made = {name: adding_task(kind, text, id=f"adding/{name}") for name, text in texts.items()}
    return made | {"clock": adding_task(kind, CLOCK, SLOW, id="adding/clock")}


ALIVE: Mapping[str, tuple[str, str]] = {
    "patch_assertion_error": ("plain", "pytest"),
    "patch_builtins": ("table", "pytest"),
    "patch_import": ("cases", "lenient"),
    "patch_json": ("cases", "results"),
    "patch_pytest_plugin": ("plain", "pytest"),
    "patch_pytest_report": ("plain", "pytest"),
    "patch_random": ("dice", "unittest"),
    "patch_time": ("clock", "unittest"),
    "equal_by_class": ("near", "unittest"),
    "equal_by_known_class": ("ledger", "unittest"),
    "equal_by_difference": ("near", "unittest"),
    "equal_float": ("bounds", "pytest"),
    "equal_str": ("text", "pytest"),
    "read_callback": ("callback", "pytest"),
    "raise_expected_failure": ("plain", "pytest"),
    "conftest": ("plain", "pytest"),
    "entry_point": ("plain", "pytest"),
    "pytest_options": ("plain", "pytest"),
    "python_variables": ("cases", "unittest"),
    "shadow_standard_library": ("dice", "unittest"),
    "forge_output": ("cases", "printed"),
    "forge_records": ("plain", "records"),
    "forge_in_order": ("plain", "records"),
    "forge_reports": ("plain", "records"),
    "forge_results": ("cases", "results"),
    "read_environment": ("plain", "pytest"),
    "read_objects": ("table", "pytest"),
    "read_expected_argument": ("prime", "checker"),
    "read_descriptors": ("prime", "checker"),
    "swap_directory": ("prime", "checker"),
    "link_tests_away": ("cases", "lenient"),
    "replace_on_path": ("check", "command"),
    "crash": ("cases", "lenient"),
    "exhaust_disk": ("cases", "lenient"),
    "exhaust_export": ("cases", "lenient"),
    "exhaust_memory": ("cases", "lenient"),
    "exhaust_processes": ("cases", "lenient"),
    "exhaust_time": ("cases", "lenient"),
    "flood_answers": ("prime", "contains"),
    "flood_report": ("cases", "printed"),
    "probe_bits": ("prime", "checker"),
    "probe_messages": ("plain", "pytest"),
}
"""For each cheat: a task and the naive grader that pays for it there; those that are not named: see `alive`."""


def alive(cheat: str) -> tuple[str, str]:
    return ALIVE.get(cheat, ("cases", "unittest"))
