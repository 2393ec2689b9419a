"""Tests that must fail, put among the hidden ones: where everything passes, they pass too. Runs inside the grading box,
on Python 3.9 and newer."""

import ast
import random

BODIES = {
    "assert": "value = {word!r}\n    assert value == 'other'",
    "false": "assert not {word!r}",
    "error": "raise RuntimeError({word!r})",
    "fail": "import pytest\n    pytest.fail({word!r})",
    "raises": "import pytest\n    class {word}(Exception): pass\n    with pytest.raises({word}): pass",
    "match": "import pytest\n    with pytest.raises(ValueError, match={word!r}): raise ValueError('other')",
    "approx": "import pytest\n    assert [1.0, {word!r}] == [pytest.approx(2.0), {word!r}]",
    "unittest-equal": "import unittest\n    unittest.TestCase().assertEqual({word!r}, 'other')",
    "unittest-true": "import unittest\n    unittest.TestCase().assertTrue(False, {word!r})",
    "unittest-in": "import unittest\n    unittest.TestCase().assertIn({word!r}, ['other'])",
}


def insert(items, wanted, rewrite, function):
    """Put a test for each of `wanted` (name -> kind) at a random place among `items`, as pytest's class `function`.

    Before a test function, and below its parent, or before all tests of a module: so no fixture is set up or torn
    down for it, and it uses none.
    """
    modules = set()
    places = []  # (the item to stand before, the parent)
    for item in items:
        module = next((node for node in item.listchain() if type(node).__name__ == "Module"), None)
        if type(item) is function:
            places.append((item, item.parent))
        elif module is not None and module not in modules and hasattr(item, "_fixtureinfo"):
            places.append((item, module))
        modules.add(module)
    for name, kind in wanted.items() if places else ():
        item, parent = random.SystemRandom().choice(places)
        info = type(item._fixtureinfo)(argnames=(), initialnames=(), names_closure=[], name2fixturedefs={})
        body = made(name, BODIES[kind].format(word=name), str(item.path), rewrite)
        items.insert(items.index(item), function.from_parent(parent, name=name, callobj=body, fixtureinfo=info))


def made(name, body, path, rewrite):
    source = f"def {name}():\n    {body}\n"
    tree = ast.parse(source)
    rewrite.rewrite_asserts(tree, source.encode())
    space = {"__name__": name}
    exec(compile(tree, path, "exec"), space)  # noqa: S102
    return space[name]
