"""Equality that is what it claims. A solution's object may say that it equals whatever it is compared with; it does not
know which of two near values is the right one. So what is no plain value and was found equal is asked again,
among values next to the right one, in random order. Runs inside the grading box, on Python 3.9 and newer."""

import ast
import os
import random
import sys

SCALARS = frozenset({bool, bytes, complex, float, int, str, type(None)})
CONTAINERS = frozenset({dict, frozenset, list, set, tuple})
PLAIN = SCALARS | CONTAINERS
ASKED = 4  # rounds; a guess is right once in 2 to the power of twice as many
DEEPEST, LONGEST = 30, 10_000
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
        self.random = random.Random(os.urandom(16))
        self.modules = sys.modules

    def same(self, a, b):
        """`a == b`, for an assert. :raises AssertionError: it says so, and would say so of other values too."""
        found = a == b
        try:
            held = bool(found)
        except Exception:  # an array's: the assert will say it
            return found
        if held and not self.genuine(a, b):
            raise AssertionError(f"{type(a).__name__} and {type(b).__name__} compare as equal, but so does anything")
        return found

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
            return all(self.is_ours(type(odd)) or not truth(odd, alien) for odd in (a, b))
        return all(self.genuine(x, y, depth + 1) for x, y in pairs)

    def knows(self, odd, plain):
        for _ in range(ASKED):
            asked = [(plain, True), (self.near(plain), False)]
            self.random.shuffle(asked)
            if any(truth(odd, value) is not expected for value, expected in asked):
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
        """Whether a class is what its module's file, in the tests or in Python itself, says: not the solution's."""
        for base in kind.__mro__:
            word = PERMISSIVE.get(base.__name__)
            if word:
                return word in self.words
        module = self.modules.get(kind.__module__)
        if getattr(module, kind.__qualname__.partition(".")[0], None) is None:
            return False
        path = getattr(module, "__file__", None)
        return path is None or os.path.realpath(path).startswith(self.roots)


class Alien:
    pass


def truth(odd, value):
    try:
        return bool(odd == value)
    except Exception:
        return False


def packages():
    return [path for path in sys.path if path.endswith("-packages")]


class Equalities(ast.NodeTransformer):
    """In a module whose asserts pytest has rewritten, lets our `same` make each comparison by `==`."""

    def visit_Assign(self, node):
        self.generic_visit(node)
        target, value = node.targets[0], node.value
        if (
            isinstance(target, ast.Name)
            and target.id.startswith("@py_assert")
            and isinstance(value, ast.Compare)
            and [type(op) for op in value.ops] == [ast.Eq]
        ):
            function = ast.Attribute(ast.Name("@pytest_ar", ast.Load()), "same", ast.Load())
            node.value = ast.Call(function, [value.left, value.comparators[0]], [])
            ast.fix_missing_locations(ast.copy_location(node.value, value))
        return node


def install(judge, rewrite, unittest):
    """Into pytest's module `rewrite`, and `unittest` where the tests use it (else None)."""
    original, equalities = rewrite.rewrite_asserts, Equalities()

    def rewrite_asserts(tree, *rest, **options):
        original(tree, *rest, **options)
        equalities.visit(tree)

    rewrite.same, rewrite.rewrite_asserts = judge.same, rewrite_asserts
    case = unittest and unittest.TestCase
    for kind in ("", "Sequence", "List", "Tuple", "Set", "Dict", "MultiLine") if case else ():
        setattr(case, f"assert{kind}Equal", wrapped(getattr(case, f"assert{kind}Equal"), judge))


def wrapped(method, judge):
    def compared(self, first, second, *rest, **options):
        method(self, first, second, *rest, **options)
        judge.same(first, second)

    compared.__name__ = compared.__qualname__ = method.__name__
    return compared
