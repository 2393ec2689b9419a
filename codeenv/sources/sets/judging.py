"""What lies beside the hidden tests of HumanEval+ and MBPP+: their cases, and when a value is the one expected. Runs in
the tests' box, without numpy: what the sets do with it is a comparison of numbers."""

import sys

RELATIVE = 1e-7
FLOATS = 1e-6  # the absolute tolerance where floats are expected and a set gives none
NUMBERS = (int, float, complex)


def cases(path, tests):
    """The pairs of arguments and expected value, or None, that a file holds as Python literals."""
    sys.set_int_max_str_digits(0)
    with open(path, encoding="utf-8", errors="surrogatepass") as file:
        inputs, results = eval(file.read(), {"inf": float("inf"), "nan": float("nan")})
    if results is None:
        results = [None] * len(inputs)
    if len(inputs) != len(results) or len(inputs) < tests:
        raise ValueError(f"{len(inputs)} inputs, {len(results)} results, {tests} tests")
    return list(zip(inputs, results, strict=True))


def agree(out, expected, tolerance):
    """As evalplus itself compares: equal; or, where it gives a tolerance or floats are expected, of the same type and
    length, and each number near. Unlike there, two NaN are near each other."""
    if same(out, expected):
        return True
    if tolerance == 0 and is_floats(expected):
        tolerance = FLOATS
    return tolerance != 0 and type(out) is type(expected) and near(out, expected, tolerance)


def agree_as_sets(out, expected, tolerance):
    return same(set(out), set(expected))


def agree_on_none(out, expected, tolerance):
    """Where a set expects an object that it cannot write down: whether there is one."""
    return same(expected, out if isinstance(out, bool) else out is not None)


def same(one, other):
    return bool(one == other)


def is_floats(value):
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def near(one, other, tolerance):
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(near(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if not (isinstance(one, NUMBERS) and isinstance(other, NUMBERS)):
        return False
    return one == other or (one != one and other != other) or abs(one - other) <= tolerance + RELATIVE * abs(other)
