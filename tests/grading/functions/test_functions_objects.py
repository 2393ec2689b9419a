"""What tests may do with the solution's objects, and the solution with those of the tests': ordinary test files, in real
boxes. Each case passes with the reference, or fails with the reason that is named."""

# ruff: noqa: E501 - tables: one case a line
from __future__ import annotations

from pathlib import Path

import pytest

from codeenv.grading import box_spec
from codeenv.sandbox.api import SandboxProvider, UnsupportedSpec
from tests.conftest import provider_or_skip
from tests.episodes import judge
from tests.grading.functions.test_functions_kind import outcomes, task_of

pytestmark = pytest.mark.anyio

SOLUTION = {
    "shapes/__init__.py": "from shapes.area import area\nVERSION = '1.2'\nLIMITS = {'max': 3}\n",
    "shapes/area.py": "def area(a, b=2, *, scale=1):\n    '''The area.'''\n    return a * b * scale\n",
    "shapes/sizes.py": "BIG = 9\n",
    "bad.py": "import nothing_of_that_name\n",
    "things.py": '''
import contextlib, dataclasses, enum, functools, threading, typing, os, queue, json
from collections import namedtuple, UserDict

class Error(Exception): pass
class Deep(Error, KeyError):
    def __init__(self, where): super().__init__(where); self.where = where
    def __str__(self): return f"deep in {self.where}"

@dataclasses.dataclass(frozen=True, order=True)
class Span:
    lo: int
    hi: int = 9
    def wide(self): return self.hi - self.lo
@dataclasses.dataclass
class Box:
    items: list = dataclasses.field(default_factory=list)
    note: str = dataclasses.field(default="", compare=False)
Row = namedtuple("Row", "name count")
class Colour(enum.Enum):
    RED = 1
    BLUE = 2
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2
class Money:
    def __init__(self, cents): self.cents = cents
    def __eq__(self, other): return isinstance(other, Money) and self.cents == other.cents
    def __hash__(self): return hash(self.cents)
    def __add__(self, other): return Money(self.cents + (other.cents if isinstance(other, Money) else other))
    __radd__ = __add__
    def __lt__(self, other): return self.cents < other.cents
    def __repr__(self): return f"Money({self.cents})"
    @classmethod
    def parse(cls, text): return cls(int(text))
    @staticmethod
    def zero(): return Money(0)
    @property
    def euros(self): return self.cents / 100
    @euros.setter
    def euros(self, value): self.cents = round(value * 100)
class Bag(dict):
    def total(self): return sum(self.values())
class Tree:
    def __init__(self, *children): self.children = list(children)
    def __iter__(self):
        yield self
        for child in self.children: yield from child
    def __len__(self): return 1 + sum(map(len, self.children))
    def __getitem__(self, at): return self.children[at]
    def __setitem__(self, at, value): self.children[at] = value
    def __delitem__(self, at): del self.children[at]
    def __contains__(self, other): return any(other is child for child in self)
    def __bool__(self): return True
class Lock:
    log = []
    def __enter__(self): self.log.append("in"); return self
    def __exit__(self, kind, value, trace): self.log.append(kind.__name__ if kind else None); return kind is KeyError
class Counter:
    def __init__(self): self.n = 0
    def __call__(self, by=1): self.n += by; return self.n

@contextlib.contextmanager
def opened(log):
    log.append("open")
    try: yield log
    finally: log.append("close")
def fail(kind): raise {"deep": Deep("x"), "os": FileNotFoundError(2, "none", "f"), "value": ValueError("v", 3), "empty": queue.Empty()}[kind]
def chain():
    try: fail("value")
    except ValueError as error: raise Error("outer") from error
def jsonly(): json.loads("{")
def call(f, *a, **k): return f(*a, **k)
def caught(f):
    try: f()
    except ValueError as error: return f"{type(error).__name__}: {error}"
    except Exception as error: return type(error).__name__
def use(thing): thing.count += 1; thing.add(5); return thing.count, len(thing), list(thing), thing[1], 5 in thing
def walk(thing): return [x for x in thing]
def squares():
    n = 0
    while True:
        yield n * n
        n += 1
def echo():
    got = []
    while len(got) < 2: got.append((yield len(got)))
    return got
@functools.lru_cache
def cached(n): return n + 1
def in_thread(f):
    out = []
    t = threading.Thread(target=lambda: out.append(f(1))); t.start(); t.join(); return out
def later(f):
    threading.Timer(0.01, f).start()
def make(n):
    def inner(m): return n + m
    return inner
def kinds(): return [int, ValueError, len]
def peek(thing, name): return getattr(thing, name)
state = []
lock = threading.Lock()
def block():
    with lock: return threading.get_ident()
def hold(enter, leave):
    with lock: enter(); leave()
def fds(): os.write(1, b"noise"); os.write(2, b"noise"); print("hello"); return input() if False else os.read(0, 10)
def sort(items, key): items.sort(key=key)
''',
}  # fmt: skip
GOOD = {
    "packages": "import shapes, shapes.sizes\nimport shapes.area as deep\nimport shapes.sizes as also\nfrom shapes import area, VERSION, LIMITS, sizes\nassert area(2, 3, scale=2) == 12 == shapes.area(2, 3, scale=2) == deep(2, 3, scale=2)\nassert VERSION == '1.2' and LIMITS == {'max': 3} and shapes.sizes.BIG == 9 == sizes.BIG and also is sizes",
    "function-looks": "from shapes import area\nassert callable(area) and area.__name__ == 'area' and area.__doc__ == 'The area.'\nwith raises(TypeError): area()",
    "no-such": "import things\nwith raises(AttributeError): things.nothing\nwith raises(ImportError):\n    from things import nothing\nwith raises(ImportError): import nothing_at_all\nwith raises(ImportError): import bad\nwith raises(AttributeError): things.Money(1).nothing",
    "monkeypatch": "import things\nthings.state.append(1)\nassert things.state == []\nthings.state = [5]\nassert things.state == [5]\nthings.fail, old = (lambda kind: 7), things.fail\nassert things.fail('x') == 7\nthings.fail = old\nwith raises(ValueError): things.fail('value')",
    "own-exceptions": "from things import fail, Error, Deep\ntry: fail('deep')\nexcept Error as e:\n    assert type(e) is Deep and isinstance(e, KeyError) and e.where == 'x' and str(e) == 'deep in x' and e.args == ('x',)\nelse: assert 0",
    "builtin-exceptions": "from things import fail\nwith raises(FileNotFoundError) as i: fail('os')\nassert (i.value.errno, i.value.filename) == (2, 'f')\nwith raises(ValueError) as i: fail('value')\nassert i.value.args == ('v', 3)\nwith raises(KeyError): fail('zzz')",
    "library-exceptions": "import queue, json, dataclasses\nfrom things import fail, jsonly, Span\nwith raises(queue.Empty): fail('empty')\nwith raises(json.JSONDecodeError) as i: jsonly()\nassert i.value.pos == 1\nwith raises(dataclasses.FrozenInstanceError): Span(1).lo = 3",
    "causes": "from things import chain, Error\nwith raises(Error) as i: chain()\nassert isinstance(i.value.__cause__, ValueError) and i.value.__cause__.args[0] == 'v'",
    "exceptions-of-the-tests": "from things import call, caught\nclass Mine(ValueError): pass\ndef boom(): raise Mine('m')\nwith raises(Mine) as i: call(boom)\nassert str(i.value) == 'm' and type(i.value) is Mine\nassert caught(boom) == 'Mine: m'\nerror = Mine('same')\ndef again(): raise error\nwith raises(Mine) as i: call(again)\nassert i.value is error",
    "dataclass": "import dataclasses\nfrom things import Span, Box\ns = Span(1, hi=4)\nassert s == Span(1, 4) and s != Span(1, 5) and s.lo == 1 and s.wide() == 3 and s < Span(2) and hash(s) == hash(Span(1, 4)) and len({s, Span(1, 4)}) == 1\nassert s != (1, 4) and s != None and [s] == [Span(1, 4)] and repr(s) == 'Span(lo=1, hi=4)'\nassert dataclasses.asdict(s) == {'lo': 1, 'hi': 4} and dataclasses.replace(s, lo=2) == Span(2, 4) and dataclasses.is_dataclass(s)\nassert Box([1], 'a') == Box([1], 'b') != Box([2])\nb = Box()\nb.note = 'n'\nassert b.note == 'n' and b.items == []",
    "namedtuple": "from things import Row\nr = Row('a', 2)\nassert r == ('a', 2) and r.name == 'a' and r[1] == 2 and tuple(r) == ('a', 2) and isinstance(r, tuple) and isinstance(r, Row) and r._replace(count=3) == ('a', 3)\nname, count = r\nassert [r] == [('a', 2)] and repr(r) == \"Row(name='a', count=2)\"",
    "enum": "from things import Colour, Level\nassert Colour.RED is Colour.RED and Colour.RED == Colour.RED != Colour.BLUE and Colour.RED.value == 1 and Colour['BLUE'].name == 'BLUE' and [c.name for c in Colour] == ['RED', 'BLUE'] and len(Colour) == 2\nassert Level.HIGH == 2 and Level.LOW < Level.HIGH and isinstance(Level.LOW, int)\nassert Colour(2) is Colour.BLUE and isinstance(Colour.RED, Colour)",
    "operators": "from things import Money\na = Money(5)\nassert a + Money(2) == Money(7) and a + 3 == Money(8) and sum([a, a]) == Money(10) and Money(1) < Money(2) and sorted([Money(3), Money(1)])[0] == Money(1) and max(Money(3), Money(1)) == Money(3)\nassert repr(a) == 'Money(5)' and str([a]) == '[Money(5)]' and a != Money(6) and a in [Money(5)] and {a: 1}[Money(5)] == 1 and a is not Money(5)",
    "class-attributes": "from things import Money\nassert Money.parse('7') == Money(7) and Money.zero().cents == 0\nm = Money(1)\nassert m.euros == 0.01\nm.euros = 2\nassert m.cents == 200\nm.extra = 4\nassert m.extra == 4 and hasattr(m, 'extra')\ndel m.extra\nassert not hasattr(m, 'extra')\nassert Money.__name__ == 'Money' and type(m) is Money and isinstance(m, Money) and issubclass(Money, Money) and not isinstance(3, Money)",
    "dict-of-its-own": "from things import Bag\nb = Bag(a=1)\nb['b'] = 2\nassert b.total() == 3 and b == {'a': 1, 'b': 2} and isinstance(b, dict) and 'a' in b and len(b) == 2 and sorted(b) == ['a', 'b'] and b.pop('a') == 1 and b != {} and dict(b) == {'b': 2} and list(b.items()) == [('b', 2)]",
    "containers": "from things import Tree\nleaf = Tree()\nt = Tree(leaf, Tree())\nassert len(t) == 3 and t[0] is leaf and leaf in t and Tree() not in t and list(t)[1] is leaf and t\nt[1] = leaf\ndel t[0]\nassert len(t) == 2 and [x is leaf for x in t] == [False, True]\nwith raises(IndexError): t[5]",
    "context-managers": "from things import Lock, opened\nwith Lock() as l: pass\nwith Lock(): raise KeyError\nwith raises(ValueError):\n    with Lock(): raise ValueError\nassert l.log == ['in', None, 'in', 'KeyError', 'in', 'ValueError']\nlog = []\nwith opened(log): pass\nwith raises(ValueError):\n    with opened([]): raise ValueError",
    "callables": "from things import Counter, make, kinds, cached, call\nc = Counter()\nassert c() == 1 and c(by=4) == 5 and c.n == 5 and make(2)(3) == 5 and kinds() == [int, ValueError, len]\nassert cached(1) == 2 and cached.cache_info().misses == 1 and call(make(1), 1) == 2\nassert call(Counter).n == 0 and call(max, 1, 2) == 2 and call(int, '7') == 7 and call(str.upper, 'a') == 'A'",
    "generators": "from itertools import islice\nfrom things import squares, echo\nassert list(islice(squares(), 4)) == [0, 1, 4, 9]\ng = echo()\nassert next(g) == 0 and g.send('a') == 1\nwith raises(StopIteration) as i: g.send('b')\nassert i.value.value == ['a', 'b'] and iter(g) is not None\ng = squares(); next(g); g.close()\nwith raises(StopIteration): next(g)",
    "callbacks": "from things import call, sort, walk\nitems = [3, 1, 2]\nsort(items, lambda x: -x)\nassert items == [3, 2, 1]\nassert call(lambda *a, **k: (a, k), 1, b=2) == ((1,), {'b': 2}) and call(items.append, 4) is None and items[-1] == 4\nassert walk(iter([1, 2])) == [1, 2] and walk(x * 2 for x in range(3)) == [0, 2, 4] and call(lambda: call(lambda: call(lambda: 3))) == 3",
    "objects-of-the-tests": "from things import use, peek\nclass Mine:\n    def __init__(self): self.count, self.items = 1, [7, 8]\n    def add(self, x): self.items.append(x)\n    def __len__(self): return len(self.items)\n    def __iter__(self): return iter(self.items)\n    def __getitem__(self, at): return self.items[at]\n    def __contains__(self, x): return x in self.items\nm = Mine()\nassert use(m) == (2, 3, [7, 8, 5], 8, True) and m.count == 2\nwith raises(AttributeError): peek(m.add, '__globals__')\nwith raises(AttributeError): peek(m, '_hidden')",
    "no-way-into-the-tests": "import things\ndef local(): return 1\ndef gen(): yield 1\nclass C: pass\nfor thing in (local, gen(), C(), C, ValueError('x')):\n    for name in ('__globals__', '__code__', '__closure__', '__self__', 'gi_frame', 'gi_code', '__dict__', '__subclasses__', '__traceback__', '__reduce_ex__', '__init__', '__mro__'):\n        if thing in (C,) and name == '__mro__' : continue\n        try: got = things.peek(thing, name)\n        except AttributeError: continue\n        assert 'standin' not in repr(type(got)) and not callable(got) or name in ('__reduce_ex__', '__init__', '__dict__', '__subclasses__'), (thing, name, got)",
    "threads-of-the-solution": "import time\nfrom things import in_thread, later\nassert in_thread(lambda x: x + 1) == [2]\nseen = []\nlater(lambda: seen.append(1))\nend = time.monotonic() + 5\nwhile not seen and time.monotonic() < end: time.sleep(0.005)\nassert seen == [1]",
    "threads-of-the-tests": "import threading\nfrom things import block, hold, call\nentered, leave = threading.Event(), threading.Event()\nt = threading.Thread(target=hold, args=(entered.set, leave.wait)); t.start()\nassert entered.wait(5)\nout = []\nother = threading.Thread(target=lambda: out.append(block())); other.start()\nother.join(0.05)\nassert out == []\nleave.set(); t.join(5); other.join(5)\nassert len(out) == 1 and out[0] != block() == block()\nthreads = [threading.Thread(target=lambda: out.append(call(lambda: 1))) for _ in range(8)]\n[x.start() for x in threads]; [x.join(5) for x in threads]\nassert len(out) == 9",
    "copies": "import copy\nfrom things import Box, Money\nb = Box([1])\nc = copy.deepcopy(b)\nc.items = [2]\nassert b.items == [1] and c.items == [2] and copy.copy(Money(3)) == Money(3)",
    "standard-streams": "from things import fds\nassert fds() == b''",
    "state-between-tests": "import things\nthings.state = things.state + [1]\nassert things.state[-1] == 1",
}  # fmt: skip
REFUSED = {
    "plain-equality": ("from things import Money\nassert Money(5) == 5", "its own `__eq__` would decide"),
    "plain-order": ("from things import Money\nMoney(5) < 6", "`__lt__` of an instance of the solution's things.Money"),
    "subclass": ("from things import Money\nclass M(Money): pass", "a class of the tests that derives from the solution's things.Money"),
    "coroutine": ("from things import call\nasync def f(): pass\nc = f()\ntry: call(print, c)\nfinally: c.close()", "cannot pass a coroutine"),
    "caught-in-the-test": ("from things import call\nimport math\ntry: call(print, math)\nexcept BaseException: pass", "cannot pass a module (math)"),
    "too-many-items": ("from things import squares\nfor _ in squares(): pass", "no answer|did not end|more than 100000 items"),
}  # fmt: skip
RAISES = """
class raises:
    def __init__(self, kind): self.kind = kind
    def __enter__(self): return self
    def __exit__(self, kind, value, trace):
        assert kind is not None, f"{self.kind.__name__} was not raised"
        self.value = value
        return issubclass(kind, self.kind)
"""


def file_of(cases: dict[str, str]) -> str:
    bodies = ("\n    ".join(body.split("\n")) for body in cases.values())
    return RAISES + "".join(
        f"\ndef test_{name.replace('-', '_')}():\n    {body}\n" for name, body in zip(cases, bodies, strict=True)
    )


@pytest.fixture(scope="module")
async def all_good() -> dict[str, str]:
    """What became of each of GOOD: one grading for all."""
    return outcomes(await judge(task_of(file_of(GOOD), SOLUTION), provider_or_skip("bubblewrap")))


@pytest.mark.parametrize("name", GOOD)
async def test_what_works(all_good: dict[str, str], name: str) -> None:
    assert all_good[f"test_{name.replace('-', '_')}"] == ""


async def test_what_is_refused_is_named_and_fails_the_test(provider: SandboxProvider) -> None:
    cases = {name: body for name, (body, _) in REFUSED.items() if name != "too-many-items"}
    found = outcomes(await judge(task_of(file_of(cases), SOLUTION), provider))
    for name in cases:
        assert REFUSED[name][1] in found[f"test_{name.replace('-', '_')}"], name


async def test_without_isolation_too(any_provider: SandboxProvider) -> None:
    names = ("packages", "callbacks", "threads-of-the-tests", "standard-streams")
    found = outcomes(await judge(task_of(file_of({name: GOOD[name] for name in names}), SOLUTION), any_provider))
    assert set(found.values()) == {""}


@pytest.mark.parametrize("python", ["3.9", "3.10", "3.12", "3.13"])
async def test_other_pythons(provider: SandboxProvider, python: str) -> None:
    found = next(map(str, Path.home().glob(f".pyenv/versions/{python}.*/bin/python{python}")), f"python{python}")
    task = task_of(file_of(GOOD), SOLUTION).model_copy(update={"python": found})
    task = task.model_copy(update={"grader": task.grader.model_copy(update={"call_timeout": 5.0})})
    try:
        provider.check(box_spec(task))
    except UnsupportedSpec as error:
        pytest.skip(str(error))
    assert {name: message for name, message in outcomes(await judge(task, provider)).items() if message} == {}
