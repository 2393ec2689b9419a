"""Comparisons that are what they claim. A solution's object may say that it equals whatever it is compared with; it
does not know which of two near values is the right one. So what is no plain value and was found equal is asked again,
among values next to the right one, in random order; what was found smaller is asked whether it is larger, and what was
found to contain a value whether it contains anything. Runs inside the grading box, on Python 3.9 and newer."""

import ast
import operator
import os
import random
import sys
import weakref

SCALARS = frozenset({bool, bytes, complex, float, int, str, type(None)})
CONTAINERS = frozenset({dict, frozenset, list, set, tuple})
PLAIN = SCALARS | CONTAINERS
ASKED = 4  # rounds; a guess is right once in 2 to the power of twice as many
DEEPEST, LONGEST = 30, 10_000
OPPOSITE = {"lt": operator.gt, "le": operator.gt, "gt": operator.lt, "ge": operator.lt}
OPERATORS = {name: getattr(operator, name) for name in ("eq", "lt", "le", "gt", "ge")}
OPERATORS["in"] = lambda a, b: a in b
WORDS = {
    "eq": "equals",
    "lt": "is less than",
    "le": "is at most",
    "gt": "is more than",
    "ge": "is at least",
    "in": "is in",
}
NAMES = {ast.Eq: "eq", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.In: "in"}
UNITTEST = {"In": "in", "Less": "lt", "LessEqual": "le", "Greater": "gt", "GreaterEqual": "ge"}
PERMISSIVE = {
    "_ANY": "ANY",
    "Approx": "approx",
    "ApproxBase": "approx",
}  # classes of others that equal much: ours if the tests name them


class Genuine:
    """`words` are those of ANY and approx that the hidden tests themselves use, `tests` is where they are."""

    def __init__(self, tests, words):
        self.roots = tuple(
            os.path.realpath(root) + os.sep for root in (tests, sys.base_prefix, sys.prefix, *packages())
        )
        self.words = words
        self.known = weakref.WeakKeyDictionary()
        self.random = random.Random(os.urandom(16))
        self.modules = sys.modules

    def compare(self, name, a, b):
        """`a == b`, `a < b`, `a in b` and so on, by the operator's name.

        :raises AssertionError: it holds, and would hold of other values too.
        """
        found = OPERATORS[name](a, b)
        kinds = type(a), type(b)
        if (kinds[0] in SCALARS and kinds[1] in SCALARS) or type(found) not in SCALARS or not found:
            return found  # what is no scalar is an array or an expression: no answer yet
        if name == "eq":
            holds = self.genuine(a, b)
        elif name == "in":
            holds = self.is_plain(kinds[1]) or not self.contains_anything(b, a)
        else:
            holds = all(map(self.is_plain, kinds)) or not truth(OPPOSITE[name], a, b)
        if not holds:
            raise AssertionError(f"{kinds[0].__name__} {WORDS[name]} {kinds[1].__name__}, but so does anything")
        return found

    def is_plain(self, kind):
        return kind in PLAIN or self.is_ours(kind)

    def contains_anything(self, odd, value):
        word = "".join(self.random.choices("qxzvkj", k=12))
        return any(truth(operator.contains, odd, other) for other in self.shuffled(Alien(), word, word.encode()))

    def shuffled(self, *values):
        return self.random.sample(values, len(values))

    def genuine(self, a, b, depth=0):
        """Whether two values that were found equal are."""
        kinds = type(a), type(b)
        if (kinds[0] in SCALARS and kinds[1] in SCALARS) or depth > DEEPEST:
            return True
        if kinds[0] is kinds[1] and kinds[0] in (list, tuple):
            pairs = zip(a[:LONGEST], b[:LONGEST])  # noqa: B905 - Python 3.9
        elif kinds[0] is kinds[1] and kinds[0] is dict:
            pairs = [(a.get(key), b[key]) for key in list(b)[:LONGEST]]
        elif kinds[0] in (set, frozenset) and kinds[1] in (set, frozenset):
            odd = [x for x in a if type(x) not in SCALARS] + [x for x in b if type(x) not in SCALARS]
            pairs = [(x, y) for x in odd[:9] for y in [*a, *b][:99] if x is not y and x == y]
        elif kinds[1] in PLAIN:
            return self.is_ours(kinds[0]) or self.knows(a, b)
        elif kinds[0] in PLAIN:
            return self.is_ours(kinds[1]) or self.knows(b, a)
        else:
            alien = Alien()
            return all(self.is_ours(type(odd)) or not truth(operator.eq, odd, alien) for odd in (a, b))
        return all(self.genuine(x, y, depth + 1) for x, y in pairs)

    def knows(self, odd, plain):
        for _ in range(ASKED):
            asked = self.shuffled((plain, True), (self.near(plain), False))
            if any(truth(operator.eq, odd, value) is not expected for value, expected in asked):
                return False
        return True

    def near(self, value):
        """Another value of the same type."""
        kind, number = type(value), self.random.randint(1, 9) * self.random.choice((1, -1))
        if kind is bool or value is None:
            return (not value) if kind is bool else str(number)
        if kind in (int, float, complex):
            other = value + number
            return other if other != value else kind(number)
        if kind in (str, bytes):
            at, word = self.random.randint(0, len(value)), "".join(self.random.choices("qxzvkj", k=2))
            return value[:at] + (word if kind is str else word.encode()) + value[at:]
        if kind is dict:
            return {**value, "".join(self.random.choices("qxzvkj", k=6)): number}
        return kind([*value, number + 1000003])

    def is_ours(self, kind):
        """Whether a class is one of the tests' or of Python's packages, and not the solution's."""
        known = self.known.get(kind)
        if known is None:
            known = self.known[kind] = self.is_from_here(kind)
        return known

    def is_from_here(self, kind):
        for base in kind.__mro__:
            word = PERMISSIVE.get(base.__name__)
            if word:
                return word in self.words
        found = module = self.modules.get(kind.__module__)
        for part in kind.__qualname__.split("."):
            found = getattr(found, part, None)
        path = getattr(module, "__file__", None)
        return found is kind and (path is None or os.path.realpath(path).startswith(self.roots))


class Alien:
    pass


def truth(operation, odd, value):
    try:
        return bool(operation(odd, value))
    except Exception:
        return False


def packages():
    return [path for path in sys.path if path.endswith("-packages")]


class Comparisons(ast.NodeTransformer):
    """In a module whose asserts pytest has rewritten, lets our `compare` make each comparison of two values."""

    def visit_Compare(self, node):
        self.generic_visit(node)
        name = NAMES.get(type(node.ops[0]))
        if name is None or len(node.ops) > 1:
            return node
        function = ast.Attribute(ast.Name("@pytest_ar", ast.Load()), "compare", ast.Load())
        call = ast.Call(function, [ast.Constant(name), node.left, node.comparators[0]], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def install(judge, rewrite, unittest):
    """Into pytest's module `rewrite`, and `unittest` where the tests use it (else None)."""
    original, comparisons = rewrite.rewrite_asserts, Comparisons()

    def rewrite_asserts(tree, *rest, **options):
        before = len(tree.body)
        original(tree, *rest, **options)
        if len(tree.body) > before:  # else the module asks to be left alone
            comparisons.visit(tree)

    rewrite.compare, rewrite.rewrite_asserts = judge.compare, rewrite_asserts
    case = unittest and unittest.TestCase
    for kind in ("", "Sequence", "List", "Tuple", "Set", "Dict", "MultiLine") if case else ():
        setattr(case, f"assert{kind}Equal", wrapped(getattr(case, f"assert{kind}Equal"), judge, "eq"))
    for kind, name in UNITTEST.items() if case else ():
        setattr(case, f"assert{kind}", wrapped(getattr(case, f"assert{kind}"), judge, name))


def wrapped(method, judge, name):
    def compared(self, first, second, *rest, **options):
        method(self, first, second, *rest, **options)
        judge.compare(name, first, second)

    compared.__name__ = compared.__qualname__ = method.__name__
    return compared
