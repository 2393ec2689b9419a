import random

import pytest

from trail import Element, PatternError, match, parse


@pytest.mark.parametrize(
    "pattern, text, expected",
    [
        ("", "", []),
        ("", "a", None),
        ("abc", "abc", []),
        ("abc", "abcd", None),
        ("a?c", "abc", ["b"]),
        ("a?c", "a/c", None),
        ("?", "", None),
        ("?", "\n", ["\n"]),
        ("*", "", [""]),
        ("*/*", "ab/cd", ["ab", "cd"]),
        ("*", "a/b", None),
        ("**", "a/b", ["a/b"]),
        ("*b*", "abcb", ["a", "cb"]),
        ("***", "a/b", ["a/", "b"]),
        ("**/*", "x/y/z", ["x/y", "z"]),
        ("**?*", "x/y", ["x/", "y", ""]),
        (r"\*\{\\", "*{\\", []),
        ("*.txt", "dir/a.txt", None),
    ],
)
def test_simple_elements(pattern, text, expected):
    assert match(pattern, text) == expected


@pytest.mark.parametrize(
    "pattern, text, expected",
    [
        ("{a,ab}*", "abc", ["a", "bc"]),
        ("{ab,a}*", "abc", ["ab", "c"]),
        ("{a,ab}c", "abc", ["ab"]),
        ("x{,y}*", "xy", ["", "y"]),
        ("x{y,}*", "xy", ["y", ""]),
        ("{}", "", [""]),
        ("{}a{,}", "a", ["", ""]),
        (r"{\,,\}}?", "},", ["}", ","]),
        (r"{\{\\}", "{\\", ["{\\"]),
        ("{a/b}*", "a/bc", ["a/b", "c"]),
        ("{a}b+", "ab+", ["a"]),
    ],
)
def test_choice(pattern, text, expected):
    assert match(pattern, text) == expected


@pytest.mark.parametrize(
    "pattern, text, expected",
    [
        ("{ab,a,b}+*", "abab", ["ab", "ab"]),
        ("{a,ab}+*", "abab", ["a", "bab"]),
        ("{ab}+", "ababab", ["ababab"]),
        ("{ab}+", "ababa", None),
        ("{ab}+", "", None),
        ("{,ab}+", "", [""]),
        ("{,ab}+*", "ab", ["", "ab"]),
        ("{ab,}+*", "ab", ["ab", ""]),
        ("{}+", "", [""]),
        ("{}+a", "a", [""]),
        ("{}+", "a", None),
        # The long alternative comes first and the rest fits after it, though a shorter run would do.
        ("{aaa,a}+*", "aaaa", ["aaa", "a"]),
        ("{aaa,a}+{a,aa,aaa}", "aaaa", ["aaa", "a"]),
        ("{aaa,a}+b*", "aaabab", ["aaa", "ab"]),
        # Going on with the first alternative is tried before the second one.
        ("{a,aab}+{b}*", "aabb", ["aa", "b", "b"]),
        ("{ab,a,b}+{c,bc}", "ababc", ["abab", "c"]),
        ("{a,ab}+{b,}+{c}", "aababc", ["aaba", "b", "c"]),
        ("{,a}+{,a}+b", "aab", ["", "aa"]),
        ("{x/,y/}+*", "x/y/x/z", ["x/y/x/", "z"]),
    ],
)
def test_repeat(pattern, text, expected):
    assert match(pattern, text) == expected


@pytest.mark.parametrize("pattern", ["{a", "a}", "{a{b}}", "a\\", "{a\\", "{a,", "{a\\}"])
def test_bad_patterns(pattern):
    with pytest.raises(PatternError):
        match(pattern, "zzz")


def test_parse_is_as_before():
    assert parse(r"a?***{b\,,c}+{}\+") == [
        Element("literal", ("a",)),
        Element("one"),
        Element("deep"),
        Element("run"),
        Element("repeat", ("b,", "c")),
        Element("choice", ("",)),
        Element("literal", ("+",)),
    ]


def sequences(options, text, start):
    """Ends of all sequences of alternatives, in the order of preference."""
    for option in options:
        if text.startswith(option, start):
            end = start + len(option)
            yield end
            yield from sequences([o for o in options if o], text, end)


def first_match(elements, text, start=0):
    """The plain definition, for small cases."""
    if not elements:
        return [] if start == len(text) else None
    (kind, options), *rest = elements
    left = len(text) - start
    if kind in ("literal", "choice"):
        ends = [start + len(o) for o in options if text.startswith(o, start)]
    elif kind == "one":
        ends = [start + 1] if left and text[start] != "/" else []
    elif kind == "repeat":
        ends = sequences(options, text, start)
    else:
        ends = [start + n for n in range(left + 1) if kind == "deep" or "/" not in text[start : start + n]]
    for end in ends:
        tail = first_match(rest, text, end)
        if tail is not None:
            return tail if kind == "literal" else [text[start:end], *tail]
    return None


def test_small_random_cases():
    r = random.Random(11)
    matched = 0
    for _ in range(2500):
        elements = []
        for _ in range(r.randint(1, 4)):
            kind = r.choice(["literal", "one", "run", "deep", "choice", "repeat", "repeat"])
            options = ()
            if kind == "literal":
                options = (r.choice("ab/"),)
            elif kind in ("choice", "repeat"):
                options = tuple("".join(r.choices("aab/", k=r.randint(0, 3))) for _ in range(r.randint(1, 4)))
            elements.append(Element(kind, options))
        show = {"literal": "{0}", "one": "?", "run": "*", "deep": "**"}
        pattern = ""
        for kind, options in elements:
            pattern += show[kind].format(*options) if kind in show else "{" + ",".join(options) + "}" + "+" * (kind == "repeat")
        text = "".join(r.choices("aabb/", k=r.randint(0, 8)))
        expected = first_match(parse(pattern), text)
        matched += expected is not None
        assert match(pattern, text) == expected, (pattern, text)
    assert matched > 300


def test_stars_that_fail():
    assert match("*a" * 50, "a" * 4000 + "b") is None
    # The last star takes all that the stars before it leave.
    expected = [""] * 48 + ["a" * (3990 - 48) + "c" + "a" * 8]
    assert match("b" + "*a" * 49, "b" + "a" * 3990 + "c" + "a" * 9) == expected


def test_deep_stars_that_match_late():
    text = "ab/" * 1300 + "yx"
    captures = match("**?" * 49 + "x", text)
    assert captures is not None and "".join(captures) + "x" == text
    assert captures[:4] == ["", "a", "", "b"]
    assert captures[4:6] == ["/", "a"]


def test_choices_that_fail():
    assert match("{a,aa}" * 100, "a" * 99) is None
    assert match("{a,aa}" * 100, "a" * 201) is None
    assert match("{a,aa}" * 100, "a" * 150) == ["a"] * 50 + ["aa"] * 50


def test_repeats_that_fail():
    assert match("{a,aa,ab,b,}+" * 20 + "c", "ab" * 1000) is None
    assert match("{aa,aaaa}+", "a" * 3999) is None


def test_one_long_repeat():
    assert match("{a,ab,ba}+c", "ab" * 2000 + "c") == ["ab" * 2000]
    assert match("{ab,a,b}+?", "ab" * 2000) == ["ab" * 1999 + "a", "b"]
