import random

import pytest

from glyph import EvalError, ParseError, evaluate, format_expr, parse, required


def env(**more):
    def recorder(name):
        return lambda *args: (name, *args)

    return {"f": recorder("f"), "g": recorder("g"), "h": recorder("h"), "x": 7, "y": 8, **more}


def run(source, **more):
    return evaluate(parse(source), env(**more))


@pytest.mark.parametrize(
    "source, value",
    [
        ("1 + 2 * -3", -5),
        ("[1, 'a b', []]", [1, "a b", []]),
        ("f(1, g())", ("f", 1, ("g",))),
        ("2 - 3 - 4 * (5 - 6)", 3),
    ],
    ids=str,
)
def test_language_without_pipes_is_unchanged(source, value):
    assert run(source) == value


@pytest.mark.parametrize(
    "source, value",
    [
        ("x |> f", ("f", 7)),
        ("x |> f()", ("f", 7)),
        ("x |> f(1, 2)", ("f", 7, 1, 2)),
        ("x |> f(1, _)", ("f", 1, 7)),
        ("x |> f(_, [_], -_)", ("f", 7, [7], -7)),
        ("3 |> _ * _ + 1", 10),
        ("3 |> _", 3),
        ("3 |> -_", -3),
        ("3 |> [_, 0]", [3, 0]),
        ("x |> (f)", ("f", 7)),
        ("x |> ((f(1)))", ("f", 7, 1)),
    ],
    ids=str,
)
def test_three_ways(source, value):
    assert run(source) == value


@pytest.mark.parametrize(
    "source, value",
    [
        ("1 + 2 |> f", ("f", 3)),
        ("1 |> f |> g", ("g", ("f", 1))),
        ("1 |> _ + 1 |> _ * 10 |> f(2, _)", ("f", 2, 20)),
        ("f(x |> g, y |> h)", ("f", ("g", 7), ("h", 8))),
        ("[1 |> f, 2]", [("f", 1), 2]),
        ("(2 |> _ + 1) * 5", 15),
        ("-(2 |> _ + 1)", -3),
        ("[1]|>f", ("f", [1])),
    ],
    ids=str,
)
def test_precedence_and_grouping(source, value):
    assert run(source) == value


@pytest.mark.parametrize(
    "source, value",
    [
        ("5 |> f(2 |> g(_))", ("f", 5, ("g", 2))),
        ("5 |> f(2 |> g)", ("f", 5, ("g", 2))),
        ("5 |> f(_ |> g(1))", ("f", ("g", 5, 1))),
        ("5 |> f(_, 2 |> g(_))", ("f", 5, ("g", 2))),
        ("5 |> f(2 |> g(_), _)", ("f", ("g", 2), 5)),
        ("5 |> (_ |> f)", ("f", 5)),
        ("5 |> f(_ |> g(_ + 1) |> h, _)", ("f", ("h", ("g", 6)), 5)),
        ("1 |> [2 |> [3 |> [_], _], _]", [[[3], 2], 1]),
        ("1 |> f([_] |> g([_] |> h(_)))", ("f", ("g", ("h", [[1]])))),
        ("5 |> f(1 |> g) + _", None),
    ],
    ids=str,
)
def test_whose_placeholder(source, value):
    if value is None:
        assert evaluate(parse(source), {"f": lambda a: a * 100, "g": lambda a: a + 1}) == 205
    else:
        assert run(source) == value


def test_left_is_evaluated_once_and_first():
    log = []

    def tell(value):
        log.append(value)
        return value

    def f(*args):
        log.append("f")
        return args

    assert evaluate(parse("t(1) |> f(t(2), _, _, t(3))"), {"t": tell, "f": f}) == (2, 1, 1, 3)
    assert log == [1, 2, 3, "f"]
    log.clear()
    assert evaluate(parse("t(1) |> f(t(2))"), {"t": tell, "f": f}) == (1, 2)
    assert log == [1, 2, "f"]
    log.clear()
    with pytest.raises(EvalError):
        evaluate(parse("t(1) |> nothing(t(2))"), {"t": tell})
    assert log == [1]


def test_environment_entry_underscore_is_not_the_placeholder():
    assert run("1 |> f(_)", _="wrong") == ("f", 1)
    assert run("1 |> _x + __ + _", _x=10, __=100) == 111
    assert run("_x", _x=5) == 5


def test_a_piped_none_is_a_value():
    assert run("n |> f(1 |> g, _)", n=None) == ("f", ("g", 1), None)
    assert run("n |> f", n=None) == ("f", None)


@pytest.mark.parametrize(
    "source, pos",
    [
        ("_", 0),
        ("1 + _", 4),
        ("_ |> f", 0),
        ("f(_)", 2),
        ("(1 |> f) + _", 11),
        ("1 |> f(_), _", None),
        ("[1 |> f(_), _]", 12),
        ("1 |> _(2)", 5),
        ("1 |> f(_ (2))", 7),
        ("_()", 0),
        ("1 |> 2", 5),
        ("1 |> 'a'", 5),
        ("1 |>  (2 + x)", 6),
        ("1 |> -f", 5),
        ("1 |> f + 1", 5),
        ("1 |> f(2) * g(3)", 5),
        ("1 |> [f]", 5),
        ("5 |> (x |> f)", 5),
        ("5 |> (x |> f(_))", 5),
        ("1 |> ", 5),
        ("|> f", 0),
        ("1 |> |> f", 5),
        ("1 | f", 2),
        ("1 > f", 2),
        ("1 | > f", 2),
    ],
    ids=str,
)
def test_parse_errors(source, pos):
    with pytest.raises(ParseError) as info:
        parse(source)
    if pos is not None:
        assert info.value.pos == pos


def test_eval_errors():
    for source in ("1 |> nothing", "1 |> x", "1 |> x(2)", "1 |> x(_)", "nothing |> f"):
        with pytest.raises(EvalError):
            run(source)


def test_nodes():
    from glyph.nodes import Call, Hole, Literal, Name, Pipe

    assert parse("1 |> f") == Pipe(Literal(1), Name("f"))
    assert parse("1 |> f()") == Pipe(Literal(1), Call("f", ()))
    assert parse("1 |> f(_)") == Pipe(Literal(1), Call("f", (Hole(),)))
    assert parse("1 |> f |> _") == Pipe(Pipe(Literal(1), Name("f")), Hole())
    assert Pipe(left=Literal(1), target=Hole()) == parse("1 |> _")
    with pytest.raises(AttributeError):
        parse("1 |> f").left = Name("x")


@pytest.mark.parametrize(
    "source, text",
    [
        ("x|>f", "x |> f"),
        ("(x |> f) |> g(_,1)", "x |> f |> g(_, 1)"),
        ("x |> (_ |> f)", "x |> (_ |> f)"),
        ("x |> (_ + (1))", "x |> _ + 1"),
        ("(x |> f) + 1", "(x |> f) + 1"),
        ("1 - (x |> f)", "1 - (x |> f)"),
        ("2 * (x |> f)", "2 * (x |> f)"),
        ("-(x |> f)", "-(x |> f)"),
        ("f((x |> g), [(y |> h)])", "f(x |> g, [y |> h])"),
        ("(1 + 2) |> f", "1 + 2 |> f"),
        ("1 |> -(-_) * (_ - 1)", "1 |> --_ * (_ - 1)"),
    ],
    ids=str,
)
def test_formatter(source, text):
    assert format_expr(parse(source)) == text


def test_round_trip_of_random_expressions():
    pick = random.Random(4)

    def expression(depth, holes):
        kinds = ["atom"] if depth == 0 else ["atom", "neg", "bin", "call", "list", "pipe", "pipe", "pipe"]
        kind = pick.choice(kinds)
        sub = lambda inner=holes: expression(depth - 1, inner)
        if kind == "atom":
            return pick.choice(["1", "x", "'s'"] + ["_"] * 3 * holes)
        if kind == "neg":
            return f"-({sub()})"
        if kind == "bin":
            return f"({sub()}) {pick.choice('+-*')} ({sub()})"
        if kind == "call":
            return f"f({', '.join(sub() for _ in range(pick.randrange(3)))})"
        if kind == "list":
            return f"[{', '.join(sub() for _ in range(pick.randrange(3)))}]"
        target = pick.choice(["g", f"g({sub(True)})", f"(_ + ({sub(True)}))", f"[{sub(True)}, _]", f"(_ |> ({sub(True)}) * _)"])
        return f"({sub()}) |> {target}"

    for _ in range(150):
        source = expression(3, False)
        node = parse(source)
        text = format_expr(node)
        assert parse(text) == node, (source, text)
        assert format_expr(parse(text)) == text


@pytest.mark.parametrize(
    "source, variables, functions",
    [
        ("x + f(y)", {"x", "y"}, {"f"}),
        ("x |> f", {"x"}, {"f"}),
        ("x |> f |> g(y)", {"x", "y"}, {"f", "g"}),
        ("f |> f", {"f"}, {"f"}),
        ("x |> _ + z", {"x", "z"}, set()),
        ("1 |> h([_, y |> g])", {"y"}, {"h", "g"}),
        ("x |> (_ |> f)", {"x"}, {"f"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(sorted(value)),
)
def test_required(source, variables, functions):
    assert required(parse(source)) == (variables, functions)
