"""Solutions that are wrong and try to pass all the same. Each test fails for a right reason, or would pass if its defence
were not there; the other tests of the run go on."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

import pytest

from codeenv.sandbox.api import SandboxProvider
from tests.episodes import judge
from tests.grading.functions.test_functions_kind import outcomes, task_of

pytestmark = pytest.mark.anyio

TESTS = """
import pytest
import solution
from solution import price, words, Point, BadInput

def test_number():
    assert price(3) == 4

def test_close():
    assert abs(price(3) - 4.0) < 1e-9
    assert price(3) <= 4 and price(3) >= 4

def test_approx():
    assert price(3) == pytest.approx(4)

def test_text():
    assert words(3) == "three" and "thr" in words(3) and words(3).startswith("th")

def test_point():
    assert solution.move(Point(1, 2)) == Point(2, 3)
    assert [solution.move(Point(1, 2))] == [Point(2, 3)]

def test_raises():
    with pytest.raises(BadInput):
        price("x")

def test_raises_builtin():
    with pytest.raises(ValueError):
        price(None)
"""
RIGHT = """
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __eq__(self, other):
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)
class BadInput(Exception): pass
def move(point): return Point(point.x + 1, point.y + 1)
def words(number): return "three"
def price(number):
    if number is None: raise ValueError
    if not isinstance(number, int): raise BadInput(number)
    return number + 1
"""
YES = """
class Yes:
    def __getattr__(self, name): return yes
    def __call__(self, *a, **k): return self
    def __bool__(self): return True
    def __hash__(self): return 1
    def __contains__(self, other): return True
    def __len__(self): return 1
    def __abs__(self): return self
    def __float__(self): return 4.0
    def __iter__(self): return iter(())
for name in "eq ge le gt lt".split():
    setattr(Yes, f"__{name}__", lambda self, other: True)
Yes.__ne__ = lambda self, other: False
for name in "add radd sub rsub mul rmul truediv rtruediv mod pow".split():
    setattr(Yes, f"__{name}__", lambda self, other: 0.0)
yes = Yes()
"""
EVERYTHING = f"{YES}\nprice = words = move = lambda *a: yes\nclass Point(Yes):\n    def __init__(self, *a): pass\nclass BadInput(Exception): pass\n"
LEAVING = "price = words = move = Point = BadInput = None\n"
SKIPPED = """
class BadInput(Exception): pass
class Skipped(BadInput): pass
class SkipTest(BadInput): pass
class Exit(BadInput): pass
class Point:
    def __init__(self, *a): raise {raised}
def price(*a): raise {raised}
words = move = price
"""
FORGE = """
import os, struct, sys, threading, gc, json
HEADER = struct.Struct("<IcIH")
def frame(kind, conversation, body, epoch=0): return HEADER.pack(len(body), kind, conversation, epoch) + body
def everywhere(data):
    for fd in range(3, 64):
        try: os.write(fd, data)
        except OSError: pass
def text(value):
    data = value.encode()
    return b"s" + struct.pack("<I", len(data)) + data
"""
WRONG = "class Point: pass\nclass BadInput(Exception): pass\ndef words(n): return ''\ndef move(p): return None\ndef price(n): return 0\n"
TRUE_ANSWER = 'b"\\0\\0\\0\\0t*\\2\\0\\0\\0TT"'  # (True, True)

ATTACKS = {
    "exit-at-import": f"import os\nos._exit(0)\n{WRONG}",
    "sys-exit-at-import": f"import sys\nsys.exit(0)\n{WRONG}",
    "exit-in-call": f"import os\n{WRONG}\ndef price(n): os._exit(0)\nwords = move = price",
    "exit-from-thread": f"import os, threading\nthreading.Timer(0.02, os._exit, [0]).start()\n{WRONG}\nimport time\ndef price(n): time.sleep(9)\nwords = move = price",
    "equal-to-everything": EVERYTHING,
    "functions-that-are-classes": f"{YES}\nclass Point(Yes):\n    def __init__(self, *a): pass\nclass BadInput(Exception): pass\nclass price(Yes):\n    def __init__(self, *a): pass\nclass words(price): pass\nclass move(price): pass",
    "a-class-the-tests-know": f"{YES}\nclass Point(Yes):\n    def __init__(self, *a): pass\nclass BadInput(Exception): pass\nprice = words = move = lambda n: Point()",
    "one-object-for-all": f"{YES}\nclass Point(Yes):\n    def __new__(cls, *a): return one\none = object.__new__(Point)\nclass BadInput(Exception): pass\nprice = words = move = lambda n: one",
    "str-and-int-subclasses": f"{WRONG}\nclass I(int):\n    __eq__ = __le__ = __ge__ = lambda s, o: True\n    __sub__ = __rsub__ = lambda s, o: 0.0\n    __hash__ = int.__hash__\nclass S(str):\n    __eq__ = __contains__ = lambda s, o: True\n    startswith = lambda s, o: True\n    __hash__ = str.__hash__\nprice = lambda n: I(0)\nwords = lambda n: S('x')",
    "float-subclass": f"{WRONG}\nclass F(float):\n    __eq__ = __le__ = __ge__ = __lt__ = lambda s, o: True\n    __sub__ = __rsub__ = lambda s, o: F(0)\n    __abs__ = lambda s: s\n    __hash__ = float.__hash__\nprice = lambda n: F(99.0)",
    "list-subclass": f"{WRONG}\nclass L(list):\n    __eq__ = __contains__ = lambda s, o: True\nprice = words = move = lambda n: L()",
    "patched-builtins": f"import builtins, json, struct, time\nbuiltins.isinstance = builtins.all = builtins.any = lambda *a: True\nbuiltins.len = lambda *a: 0\njson.loads = json.dumps = struct.pack = struct.unpack = time.sleep = lambda *a: b''\n{WRONG}",
    "patched-codec": f"import sys\nfor name, module in list(sys.modules.items()):\n    if name.endswith('box.codec'):\n        module.Decoder.message = lambda self: ((), 'call', len, ([],), ())\n{WRONG}",
    "answers-true-to-all": f"import sys\nfrom codeenv.grading.functions.box.peer import Peer\nPeer.operation = lambda self, name: (lambda *a: True)\n{WRONG}",
    "raises-skip": SKIPPED.format(raised="Skipped('x')"),
    "raises-skiptest": f"import unittest\n{SKIPPED.format(raised='unittest.SkipTest(1)')}",
    "raises-pytest-skip": f"import pytest\n{SKIPPED.format(raised='pytest.skip.Exception(1)')}",
    "raises-pytest-exit": f"import pytest\n{SKIPPED.format(raised='pytest.exit.Exception(1)')}",
    "raises-system-exit": SKIPPED.format(raised="SystemExit(0)"),
    "raises-keyboard-interrupt": SKIPPED.format(raised="KeyboardInterrupt"),
    "raises-generator-exit": SKIPPED.format(raised="GeneratorExit"),
    "raises-at-import": "raise KeyboardInterrupt",
    "exception-equal-to-all": "class Meta(type):\n    def __instancecheck__(c, o): return True\n    def __subclasscheck__(c, o): return True\nclass BadInput(Exception, metaclass=Meta): pass\nclass Point: pass\ndef price(*a): raise BadInput\nwords = move = price",
    "forged-answers": f"{FORGE}\n{WRONG}\ndef price(n):\n    everywhere(frame(b'R', 1, {TRUE_ANSWER}) * 5)\n    return 0\nwords = move = price",
    "forged-at-import": f"{FORGE}\neverywhere(frame(b'R', 1, {TRUE_ANSWER}) * 50)\n{WRONG}",
    "forged-records": f"{FORGE}\nfor name in ('number', 'close', 'approx', 'text', 'point', 'raises', 'raises_builtin'):\n    everywhere(frame(b'E', 0, b''))\n{WRONG}",
    "forged-death": f"{FORGE}\neverywhere(frame(b'D', 0, b'x', 1))\n{WRONG}",
    "calls-out-of-order": f"{FORGE}\neverywhere(frame(b'C', 7, b'') + frame(b'C', 1 << 31, b''))\n{WRONG}",
    "huge-frame": f"{FORGE}\neverywhere(HEADER.pack(0xffffffff, b'R', 1, 0))\n{WRONG}",
    "noise": f"{FORGE}\neverywhere(os.urandom(5000))\n{WRONG}",
    "noise-on-standard-streams": f"import os, sys\nfor fd in (0, 1, 2):\n    try: os.write(fd, os.urandom(100000))\n    except OSError: pass\nprint('x' * 10**6)\nsys.stdin.read()\n{WRONG}",
    "infinite-list": f"{WRONG}\ndef price(n):\n    x = []\n    while True: x.append('x' * 10**6)\nwords = move = price",
    "infinite-generator": f"{WRONG}\ndef price(n):\n    while True: yield 4\nwords = move = price",
    "deep-nesting": f"{WRONG}\ndef price(n):\n    x = []\n    for _ in range(100000): x = [x]\n    return x\nwords = move = price",
    "huge-output": f"{WRONG}\ndef price(n): return 'x' * 10**8\nwords = move = price",
    "reduce-gadget": f"{WRONG}\nimport os\nclass G:\n    def __reduce__(self): return os._exit, (0,)\n    def __deepcopy__(self, m): os._exit(0)\nprice = words = move = lambda n: G()",
    "fork": f"import os\nos.fork()\n{WRONG}",
    "closes-descriptors": f"import os\nos.closerange(3, 256)\n{WRONG}",
    "kills-all": "import os, signal\ndef price(n): os.kill(-1, signal.SIGKILL)\nwords = move = price\nclass Point: pass\nclass BadInput(Exception): pass",
    "repr-that-raises": f"{WRONG}\nclass R:\n    def __repr__(self): raise SystemExit(0)\n    __str__ = __repr__\n    def __eq__(self, o): raise SystemExit(0)\nprice = words = move = lambda n: R()",
    "fixtures-of-its-own": f"import pytest\n{WRONG}\n@pytest.fixture(autouse=True)\ndef cheat(): pytest.skip('x')\ndef pytest_runtest_makereport(*a): pass\npytestmark = pytest.mark.skip",
    "conftest-and-plugins": f"{WRONG}",
}  # fmt: skip
BESIDE = {
    "conftest-and-plugins": {
        "conftest.py": "import os; os._exit(0)", "pytest.py": "raise SystemExit(0)", "sitecustomize.py": "import os; os._exit(0)",
        "pytest.ini": "[pytest]\naddopts = --collect-only\n", "unittest.py": "import os; os._exit(0)",
    }
}  # fmt: skip
HARMLESS = {"test_raises", "test_raises_builtin"}
"""Tests that a solution may pass without being right: they want an exception, which any solution may raise."""
LIMITS = {"one-object-for-all": {"test_point"}}
"""What `docs/trust.md` names: a test that makes its expectation with the solution's own class trusts that class."""


async def test_the_right_solution_passes(provider: SandboxProvider) -> None:
    verdict = await judge(task_of(TESTS, RIGHT), provider)
    assert set(outcomes(verdict).values()) == {""}, outcomes(verdict)
    assert (verdict.outcome, verdict.reward, verdict.exit_code, verdict.tests_total) == ("solved", 1.0, 0, 7)


@pytest.mark.parametrize("name", ATTACKS)
async def test_no_attack_makes_a_test_pass(provider: SandboxProvider, name: str) -> None:
    files = {"solution.py": ATTACKS[name], **BESIDE.get(name, {})}
    task = task_of(TESTS, files, call_timeout=0.6)
    task = task.model_copy(update={"limits": task.limits.model_copy(update={"memory_mb": 300})})
    verdict = await judge(task, provider)
    found = outcomes(verdict)
    assert verdict.outcome == "failed"
    assert len(found) == 7
    harmless = HARMLESS | LIMITS.get(name, set())
    passed = {test for test, message in found.items() if not message}
    assert passed <= harmless, found
