"""Whether the framework, and what tests judge by, are at the end what they were before the solution was loaded. Runs
inside the grading box, on Python 3.9 and newer."""

import sys

FRAMEWORK = ("_pytest", "pluggy", "pytest", "unittest")  # the classes too, with all that is in them
JUDGES = (
    *FRAMEWORK, "builtins", "copy", "datetime", "decimal", "difflib", "fractions", "functools", "inspect", "itertools",
    "json", "math", "numbers", "operator", "random", "re", "statistics", "time", "types",
)  # fmt: skip
FUNCTION = type(lambda: None)
MISSING = object()


def watch():
    """Remember every function and class of those modules, as far as they are loaded; gives the function that names what
    has become another since."""
    seen = []
    for name, module in sorted(sys.modules.items()):
        top = name.partition(".")[0]
        if top not in JUDGES:
            continue
        space = vars(module)
        for key, value in list(space.items()):
            if callable(value):
                seen.append((space, f"{name}.{key}", key, value, code(value)))
            if top in FRAMEWORK and isinstance(value, type) and value.__module__ == name:
                seen += [
                    (vars(value), f"{name}.{key}.{inner}", inner, thing, code(thing))
                    for inner, thing in list(vars(value).items())
                    if callable(thing) or isinstance(thing, (property, staticmethod, classmethod))
                ]

    def changed(missing=MISSING, code=code):
        return [
            name
            for space, name, key, value, known in seen
            if space.get(key, missing) is not value or (known is not None and code(value) is not known)
        ]

    return changed


def code(value, function=FUNCTION):
    return value.__code__ if type(value) is function else None
