import pytest

from catalog import QueryError, parse, search

A, B, C, D = (("text", x) for x in "abcd")

TREES = {
    "or-and-and": [
        ("a", A),
        ("a or b or c", ("or", [A, B, C])),
        ("a b and c", ("and", [A, B, C])),
        ("a or b c or d", ("or", [A, ("and", [B, C]), D])),
    ],
    "without": [
        ("a without b without c", ("without", ("without", A, B), C)),
        ("a without b c", ("without", A, ("and", [B, C]))),
        ("a or b without c or d", ("or", [A, ("without", B, C), D])),
        ("a without (b or c)", ("without", A, ("or", [B, C]))),
    ],
    "parentheses": [
        ("(a b) c", ("and", [("and", [A, B]), C])),
        ("a or (b or c)", ("or", [A, ("or", [B, C])])),
        ("((a))", A),
    ],
    "not": [
        ("not a b", ("and", [("not", A), B])),
        ("NOT not(a b)", ("not", ("not", ("and", [A, B])))),
        ("a not b", ("and", [A, ("not", B)])),
    ],
    "comparisons": [
        ("x=1 y!=-2.50", ("and", [("cmp", "x", "=", 1), ("cmp", "y", "!=", -2.5)])),
        ('x ~ y z<="<=\\"\\\\"', ("and", [("cmp", "x", "~", "y"), ("cmp", "z", "<=", '<="\\')])),
        ("a-5 = b-c", ("cmp", "a-5", "=", "b-c")),
    ],
    "lists-and-ranges": [
        ("x in (1990..1999, 2.5..2.5,fr,\"a, b\", -3)", ("in", "x", [("range", 1990, 1999), ("range", 2.5, 2.5), "fr", "a, b", -3])),
    ],
    "tokens": [
        ('a"b"a', ("and", [A, B, A])),
        ("1984 007 -1.50", ("and", [("text", "1984"), ("text", "007"), ("text", "-1.50")])),
        ('"or" orb \tOr\n"not"', ("or", [("and", [("text", "or"), ("text", "orb")]), ("text", "not")])),
    ],
    "keywords-and-words": [
        ("x = Y in_x", ("and", [("cmp", "x", "=", "Y"), ("text", "in_x")])),
        ("x in (1) in2 in (2)", ("and", [("in", "x", [1]), ("in", "in2", [2])])),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", TREES)
def test_tree(group):
    for text, tree in TREES[group]:
        assert parse(text) == tree, f"tree of {text!r}"


def test_number_types():
    values = [part[3] for part in parse("x=1 x=1.0 x=-0 x=10.50")[1]]
    assert [type(v) for v in values] == [int, float, int, float]


ERRORS = {
    "too-early-or-misplaced": [
        ("", 0),
        ("  ", 2),
        ("a or", 4),
        ("a or ", 5),
        ("or a", 0),
        ("a and or b", 6),
        ("a without", 9),
        ("not", 3),
        ("a )", 2),
        ("()", 1),
    ],
    "open-groups": [
        ("(a", 0),
        (" (a (b or c ", 4),
        ("(a (b) c", 0),
        ("(a or", 5),
        ("(a (not", 7),
        ("(x =", 4),
        ("(x in (1", 8),
    ],
    "lists": [
        ("x in (1,", 8),
        ("x in 5", 5),
        ("x in ()", 6),
        ("x in (1,)", 8),
        ("x in (1 2)", 8),
    ],
    "ranges": [
        ("x in (a..b)", 7),
        ("x in (1..b)", 9),
        ("x in (5..4)", 9),
        ("x in (1..2..3)", 10),
        ("x in (-1..-2)", 10),
    ],
    "comparisons": [
        ("x ~ 5", 4),
        ("x = and", 4),
        ("in = 5", 0),
        ("x < 1 < 2", 6),
        ('"x" = 1', 4),
        ("5 = x", 2),
        ("x = (1)", 4),
        ("a, b", 1),
    ],
    "numbers": [
        ("12ab", 2),
        ("x=1-2", 3),
        ("1.", 1),
        ("x in (1...2)", 9),
    ],
    "characters": [
        ("a & b", 2),
        ("\u00e4", 0),
        ("a\u00a0b", 1),
    ],
    "strings-and-signs": [
        ('a "bc', 2),
        ('a "b\\n"', 4),
        ('a "b\\n', 4),
        ("x ! = 1", 2),
        ("x == 1", 3),
    ],
    "first-problem-wins": [
        ("a ) & b", 2),
        ('or "unfinished', 0),
        ('(a "x', 3),
        ("x = ) $", 4),
        ("(a $", 3),
    ],
}  # fmt: skip


def error_position(function, *args):
    try:
        function(*args)
    except QueryError as error:
        return error.pos
    return "no error"


@pytest.mark.parametrize("group", ERRORS)
def test_error_position(group):
    for text, pos in ERRORS[group]:
        assert error_position(parse, text) == pos, f"position of the error in {text!r}"
        assert error_position(search, text, []) == pos, f"position of the error in searching for {text!r}"


RECORDS = {
    "emma": {"title": "Emma", "year": 1815, "lang": ["en"], "tags": ["novel", "Love"], "shelf": None},
    "faust": {"title": "Faust", "year": 1808.5, "lang": ["de", "la"], "tags": []},
    "atlas": {"title": "Stra\u00dfenatlas", "year": "1999", "shelf": "B-12", "lang": "de"},
    "log": {"title": "log", "marks": [3, "x", 12.0]},
}  # fmt: skip
SEARCHES = {
    "numbers-and-strings": [
        ("year < 1815", "faust"),
        ("year <= 1815", "emma faust"),
        ("year != 1815", "faust atlas"),
        ('year = "1999"', "atlas"),
        ("year >= a or year = 1999", ""),
        ("not year = 1815", "faust atlas log"),
    ],
    "absent-fields": [
        ("shelf != x", "atlas"),
        ("not shelf = B-12", "emma faust log"),
    ],
    "list-fields": [
        ("lang = de", "faust atlas"),
        ("lang != de", "emma"),
        ("tags != x", "emma faust"),
        ("tags = love", ""),
        ("tags ~ LOV", "emma"),
    ],
    "strings": [
        ("title ~ strasse", "atlas"),
        ("title > Emma", "faust atlas log"),
        ("year ~ \"18\"", ""),
    ],
    "in": [
        ("year in (1808..1815)", "emma faust"),
        ("year in (1815.0, \"1999\")", "emma atlas"),
        ("year in (1900..2000)", ""),
        ("marks in (12)", "log"),
        ("marks in (4..11)", ""),
        ("marks < 5", "log"),
        ("marks != x", ""),
        ("nothing in (1)", ""),
    ],
    "text": [
        ("novel", "emma"),
        ("title", ""),
        ("12", "atlas"),
        ("STRASSE", "atlas"),
        ('""', "emma faust atlas log"),
    ],
    "without": [
        ("lang ~ e without tags = novel", "faust atlas"),
        ("title ~ a without lang = la without shelf ~ b", "emma"),
        ("a without b", "emma faust"),
        ("de without de without zzz", ""),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", SEARCHES)
def test_search(group):
    for text, want in SEARCHES[group]:
        found = search(text, list(RECORDS.values()))
        assert [name for r in found for name in RECORDS if RECORDS[name] is r] == want.split(), f"records found by {text!r}"
