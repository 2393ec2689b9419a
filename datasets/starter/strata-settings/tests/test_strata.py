from copy import deepcopy

import pytest

import strata.merge
from strata import REMOVE, CycleError, MissingError, Settings


def settings(*layers):
    s = Settings()
    for layer in layers:
        s.push(layer)
    return s


def test_readme_example():
    s = settings(
        {"host": "localhost", "url": "http://${host}:${port}/", "port": 80, "paths": ["/a"]},
        {"port": 8080, "paths": {"$append": ["/b"]}},
    )
    assert (s.get("url"), s.get("paths")) == ("http://localhost:8080/", ["/a", "/b"])
    assert s.pop() == {"port": 8080, "paths": {"$append": ["/b"]}}
    assert (s.get("url"), s.get("paths")) == ("http://localhost:80/", ["/a"])


@pytest.mark.parametrize(
    "layers, want",
    [
        pytest.param([{"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}], {"a": {"x": 1, "y": 3}}, id="deep"),
        pytest.param([{"a": {"x": 1}}, {"a": REMOVE}, {"a": {"z": 1}}], {"a": {"z": 1}}, id="removed-then-set"),
        pytest.param([{"a": {"x": 1}}, {"a": {"x": REMOVE, "no": REMOVE}}], {"a": {}}, id="removed-inside"),
        pytest.param([{"a": 5}, {"a": {"x": REMOVE, "y": 1}}], {"a": {"y": 1}}, id="dict-over-number"),
        pytest.param([{"a": {"b": {"l": {"$append": [1]}, "r": REMOVE}}}], {"a": {"b": {"l": [1]}}}, id="rules-hold-in-new-dicts"),
        pytest.param([{"a": "text"}, {"a": {"$append": [1]}}], {"a": [1]}, id="append-to-a-string"),
        pytest.param([{"a": {"x": 1}}, {"a": {"$append": [1]}}, {"a": {"$append": [2]}}], {"a": [1, 2]}, id="append-to-a-dict"),
        pytest.param([{"a": [1]}, {"a": {"$append": [2], "x": 1}}], {"a": {"$append": [2], "x": 1}}, id="not-the-only-key"),
        pytest.param([{"a": [1], "b": 1, "c": 1, "d": 1}, {"a": [], "b": None, "c": False, "d": ""}], {"a": [], "b": None, "c": False, "d": ""}, id="empty-values-replace"),
        pytest.param([{"a": [{"x": 1}]}, {"a": [{"$append": [1]}]}], {"a": [{"$append": [1]}]}, id="dicts-in-lists-are-plain"),
    ],
)
def test_merging(layers, want):
    before = deepcopy(layers)
    s = settings({"all": {}}, *[{"all": layer} for layer in layers])
    assert s.get("all") == want
    assert layers == before, "a layer was changed"


def test_pop_leaves_no_trace():
    base = {"db": {"host": "a", "tags": ["x"]}, "list": [1]}
    before = deepcopy(base)
    s = settings(base)
    top = {"db": {"host": "b", "extra": 1, "tags": {"$append": ["y"]}}, "list": {"$append": [2]}, "new": {"k": []}}
    for _ in range(3):
        s.push(top)
        assert s.get("db") == {"host": "b", "extra": 1, "tags": ["x", "y"]} and s.get("list") == [1, 2]
        assert s.pop() == top
        assert s.get("db") == before["db"] and s.get("list") == [1]
        assert s.get("new", "gone") == "gone"
    assert base == before


def test_a_layer_counts_as_it_was_when_pushed():
    layer = {"a": {"x": [1]}}
    s = settings(layer)
    layer["a"]["x"].append(2)
    layer["b"] = 1
    assert s.get("a") == {"x": [1]} and s.get("b", None) is None
    assert s.pop() == {"a": {"x": [1]}}


def test_pop_on_an_empty_stack():
    with pytest.raises(IndexError):
        Settings().pop()


def test_empty_values_are_present():
    for value in (None, False, 0, "", [], {}):
        s = settings({"a": {"b": value}, "ref": "${a.b}", "text": "<${a.b}>"})
        assert s.get("a.b", "default") == value
        assert s.get("ref") == value
        assert s.get("text") == f"<{value}>"


def test_missing():
    s = settings({"a": {"b": 1}, "l": [1]})
    for path in ("x", "a.x", "a.b.c", "l.0", ""):
        with pytest.raises(MissingError):
            s.get(path)
        assert s.get(path, None) is None
        assert s.get(path, "${a.b}") == "${a.b}", "a default is returned as it is"


def test_missing_reference_is_an_error_in_spite_of_a_default():
    s = settings({"a": "see ${nowhere}", "b": ["${a}"]})
    for path in ("a", "b"):
        with pytest.raises(MissingError):
            s.get(path, "default")


def test_using_a_path_twice_is_no_cycle():
    s = settings({"h": "x", "two": "${h}-${h}", "left": "${h}l", "right": "${h}r", "both": "${left}${right}", "l": ["${both}", {"k": "${both}"}]})
    assert s.get("two") == "x-x" and s.get("both") == "xlxr"
    assert s.get("l") == ["xlxr", {"k": "xlxr"}]


def test_cycles():
    s = settings({"a": "${b}", "b": ["x", "${a}"], "self": "1${self}", "outer": {"in": "${outer}"}, "dict": {"k": {"l": "${dict.k}"}}, "user": "${ok}${a}", "ok": 1})
    for path in ("a", "b", "self", "outer", "dict", "user") * 2:
        with pytest.raises(CycleError):
            s.get(path)


def test_types_and_escapes():
    s = settings({"n": 5, "t": "${n}", "d": {"x": "${n}", "${n}": 1}, "whole": "${d}", "esc": "$${n} is ${n}", "only": "$${n}", "via": "${only}"})
    assert s.get("t") == 5
    assert s.get("whole") == {"x": 5, "${n}": 1}
    assert s.get("esc") == "${n} is 5"
    assert s.get("only") == "${n}"
    assert s.get("via") == "${n}"


def test_references_follow_the_layers():
    s = settings({"name": "a", "d": {"text": "I am ${name}"}})
    assert s.get("d") == {"text": "I am a"}
    s.push({"name": "b"})
    assert s.get("d") == {"text": "I am b"} and s.get("d.text") == "I am b"
    s.pop()
    assert s.get("d") == {"text": "I am a"}


def test_results_belong_to_the_caller():
    s = settings({"d": {"l": [1, [2]], "m": {"k": "$${x}"}}, "ref": "${d}"})
    for path in ("d", "ref", "d"):
        got = s.get(path)
        assert got == {"l": [1, [2]], "m": {"k": "${x}"}}
        got["l"][1].append(3)
        got["m"]["new"] = 1
        got["l"].clear()


def test_merged_view_is_kept(monkeypatch):
    calls = []
    real = strata.merge.merge_layers
    monkeypatch.setattr(strata.merge, "merge_layers", lambda layers: (calls.append(1), real(layers))[1])
    s = settings({"a": 1}, {"b": "${a}"})
    assert not calls, "merging is lazy"
    for _ in range(3):
        s.get("a"), s.get("b"), s.get("c", None)
    assert len(calls) == 1
    s.pop()
    s.get("a")
    assert len(calls) == 2
