from copy import deepcopy

import pytest

from spans import spans


def typed(value):
    """A form in which 1, 1.0 and True differ."""
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [typed(item) for item in value])
    return (type(value).__name__, value)


def test_example():
    got = spans([(0, {"fan": "low"}), (4, {"fan": "low", "lamp": None}), (9, {"fan": "high"})], end=12)
    assert got == {"fan": [(0, 9, "low"), (9, 12, "high")], "lamp": [(4, 9, None)]}


def test_empty():
    assert spans([]) == {}
    assert spans(iter([]), end=5) == {}


def test_empty_snapshot_closes_everything():
    assert spans([(1, {"a": 1, "b": 2}), (3, {})]) == {"a": [(1, 3, 1)], "b": [(1, 3, 2)]}


def test_open_end_is_none():
    assert spans([(1, {"a": 5}), (2, {"a": 5})]) == {"a": [(1, None, 5)]}


def test_none_is_a_value_and_missing_is_not():
    got = spans([(0, {"a": None}), (1, {"a": None}), (2, {}), (3, {"a": None}), (4, {"a": 0})], end=9)
    assert got == {"a": [(0, 2, None), (3, 4, None), (4, 9, 0)]}


def test_same_value_after_gap_is_a_new_span():
    assert spans([(0, {"a": 1}), (2, {"b": 1}), (4, {"a": 1})], end=6) == {"a": [(0, 2, 1), (4, 6, 1)], "b": [(2, 4, 1)]}


def test_numbers_of_different_types_differ():
    got = spans([(0, {"a": 1}), (1, {"a": True}), (2, {"a": 1.0}), (3, {"a": 1.0})], end=4)
    assert [(s, e, typed(v)) for s, e, v in got["a"]] == [
        (0, 1, ("int", 1)),
        (1, 2, ("bool", True)),
        (2, 4, ("float", 1.0)),
    ]


@pytest.mark.parametrize(
    "first, second",
    [([1], [True]), ((0,), [0]), ({"k": [0]}, {"k": [0.0]}), ([[], 1], [[], 1, 1]), ({"k": 1}, {"k": 1, "m": 1})],
    ids=["bool-in-list", "tuple-list", "deep-float", "longer", "more-keys"],
)
def test_nested_values_differ(first, second):
    got = spans([(0, {"a": first}), (5, {"a": second})])
    assert [(s, e) for s, e, _ in got["a"]] == [(0, 5), (5, None)]


@pytest.mark.parametrize(
    "first, second",
    [({"x": 1, "y": [2]}, {"y": [2], "x": 1}), ([1, (2, None)], [1, (2, None)])],
    ids=["key-order", "equal-deep"],
)
def test_nested_values_same(first, second):
    assert spans([(0, {"a": first}), (5, {"a": second})]) == {"a": [(0, None, first)]}


def test_any_order():
    got = spans([(9, {"a": 3}), (1, {"a": 1}), (5, {"a": 2})], end=10)
    assert got == {"a": [(1, 5, 1), (5, 9, 2), (9, 10, 3)]}


def test_last_of_equal_ticks_wins_wholly():
    got = spans([(3, {"ghost": 1, "a": 1}), (0, {"a": 1}), (3, {"b": 2})], end=5)
    assert got == {"a": [(0, 3, 1)], "b": [(3, 5, 2)]}


def test_equal_ticks_with_uncomparable_content():
    assert spans([(0, {"a": 1}), (0, {"a": "x"}), (0, {"a": None})], end=2) == {"a": [(0, 2, None)]}


def test_snapshots_at_or_after_end_are_ignored():
    got = spans([(0, {"a": 1}), (5, {"a": 2, "late": 1}), (7, {})], end=5)
    assert got == {"a": [(0, 5, 1)]}
    assert spans([(5, {"a": 1})], end=5) == {}


def test_end_zero_and_negative_ticks():
    assert spans([(-4, {"a": 1}), (-1, {"a": 2}), (0, {"a": 3})], end=0) == {"a": [(-4, -1, 1), (-1, 0, 2)]}


def test_key_order():
    got = spans([(5, {"z": 1, "a": 1}), (0, {"m": 1, "c": 1}), (5, {"y": 1, "c": 1, "b": 1})])
    assert list(got) == ["m", "c", "y", "b"]


def test_key_order_is_first_appearance_not_first_close():
    got = spans([(0, {"a": 1, "b": 1}), (1, {"a": 1, "b": 2})], end=2)
    assert list(got) == ["a", "b"]


def test_generator_that_reuses_its_dict():
    def feed():
        settings = {"a": [1]}
        yield 0, settings
        settings["a"].append(2)
        yield 1, settings
        settings.clear()
        yield 2, settings

    assert spans(feed(), end=9) == {"a": [(0, 1, [1]), (1, 2, [1, 2])]}


def test_result_is_detached_and_input_untouched():
    data = [(2, {"a": {"k": [1]}}), (0, {"a": {"k": [1]}})]
    before = deepcopy(data)
    got = spans(data)
    assert data == before
    data[0][1]["a"]["k"].append(9)
    data[1][1]["a"]["k"].append(9)
    assert got == {"a": [(0, None, {"k": [1]})]}
