import pytest

import waymark.errors as errors
from waymark import Match, MethodNotAllowed, NotFound, PatternError, RouteError, Router


def build(*rows):
    """Router with GET routes; a row is a pattern or (pattern, name). The handler is the pattern."""
    router = Router()
    for row in rows:
        pattern, name = row if isinstance(row, tuple) else (row, None)
        router.add("GET", pattern, pattern, name=name)
    return router


def found(router, path, method="GET"):
    match = router.match(method, path)
    return match.handler, match.params


def missing(router, path):
    with pytest.raises(NotFound):
        router.match("GET", path)


def test_what_works_today():
    router = Router()
    router.add("get", "/", "home")
    router.add("GET", "/a b/{x}", "one")
    router.add("PUT", "/a b/{y}", "two")
    assert found(router, "/", "get") == ("home", {})
    assert found(router, "/a%20b/c%2Fd", "put") == ("two", {"y": "c/d"})
    with pytest.raises(MethodNotAllowed) as info:
        router.match("POST", "/a%20b/c")
    assert info.value.allowed == ["GET", "PUT"]
    for path in ("/a%20b", "/a%20b/", "/a%20b/c/", "//", "x"):
        missing(router, path)


def test_int_converter():
    router = build("/n/{n:int}", "/n/{s:str}")
    assert found(router, "/n/0042") == ("/n/{n:int}", {"n": 42})
    assert found(router, "/n/%34%32") == ("/n/{n:int}", {"n": 42})
    for text in ("-1", "+1", "1_0", "4x", "1%0A", "%D9%A3", "%C2%B2"):
        assert router.match("GET", "/n/" + text).handler == "/n/{s:str}", text


def test_path_converter():
    router = build("/f/{p:path}", "/{a}")
    assert found(router, "/f/a") == ("/f/{p:path}", {"p": "a"})
    assert found(router, "/f/a/b%20c/d") == ("/f/{p:path}", {"p": "a/b c/d"})
    assert found(router, "/f") == ("/{a}", {"a": "f"})
    for path in ("/f/", "/f/a/", "/f/a//b", "/f//a"):
        missing(router, path)
    assert found(build("/{p:path}"), "/x/y") == ("/{p:path}", {"p": "x/y"})
    missing(build("/{p:path}"), "/")


@pytest.mark.parametrize(
    "pattern",
    ["/{a:float}", "/{a:}", "/{:int}", "/{p:path}/x", "/{p:path}/{q}", "/{a:int}/{a}", "/{a:path}{b}", "/x{a:int}", "a", "/a/", "/{1:int}"],
    ids=str,
)
def test_pattern_errors(pattern):
    with pytest.raises(PatternError):
        Router().add("GET", pattern, None)


def test_mount_basic_and_root():
    child = build("/", "/{id:int}", "/x/{rest:path}")
    router = Router()
    router.mount("/shop/{town}", child)
    assert found(router, "/shop/rome") == ("/", {"town": "rome"})
    assert found(router, "/shop/rome/7") == ("/{id:int}", {"town": "rome", "id": 7})
    assert found(router, "/shop/rome/x/a/b") == ("/x/{rest:path}", {"town": "rome", "rest": "a/b"})
    for path in ("/shop/rome/", "/shop", "/shop//7", "/7", "/"):
        missing(router, path)
    assert found(child, "/7") == ("/{id:int}", {"id": 7})


def test_mount_at_root():
    child = build("/", "/a")
    router = Router()
    router.mount("/", child)
    assert found(router, "/") == ("/", {}) and found(router, "/a") == ("/a", {})


def test_order_is_that_of_adding_across_mounts():
    first, second = build("/a"), build("/{any}")
    router = Router()
    router.mount("/", second)
    router.mount("/", first)
    router.add("GET", "/b", "b")
    assert found(router, "/a")[0] == "/{any}" and found(router, "/b")[0] == "/{any}"
    other = Router()
    other.add("GET", "/b", "b")
    other.mount("/", first)
    other.mount("/", second)
    assert found(other, "/a")[0] == "/a" and found(other, "/b")[0] == "b" and found(other, "/c")[0] == "/{any}"


def test_method_is_searched_over_all_mounts():
    one, two, three = Router(), Router(), Router()
    one.add("PUT", "/a", "put")
    two.add("GET", "/{x}", "get")
    three.add("DELETE", "/a", "delete")
    three.add("PUT", "/a", "late put")
    router = Router()
    for child in (one, two, three):
        router.mount("/m", child)
    router.add("PATCH", "/m/b", "patch")
    assert found(router, "/m/a", "DELETE")[0] == "delete"
    assert found(router, "/m/a", "PUT")[0] == "put"
    with pytest.raises(MethodNotAllowed) as info:
        router.match("PATCH", "/m/a")
    assert info.value.allowed == ["DELETE", "GET", "PUT"]


def test_mounts_are_live_and_shared():
    child, inner, router, other = Router(), Router(), Router(), Router()
    router.mount("/one", child)
    router.mount("/two", child, name="two")
    other.mount("/three", child)
    child.mount("/in", inner)
    inner.add("GET", "/late", "late", name="late")
    for asked, path, name in ((router, "/one/in/late", "late"), (router, "/two/in/late", "two:late"), (other, "/three/in/late", "late")):
        assert asked.match("GET", path) == Match("late", {}, name)


def test_cycles_are_refused():
    a, b, c = build("/a"), build("/b"), build("/c")
    a.mount("/b", b)
    b.mount("/c", c)
    for outer, inner in ((a, a), (b, a), (c, a), (c, b)):
        with pytest.raises(errors.MountError):
            outer.mount("/loop", inner)
    assert issubclass(errors.MountError, RouteError)
    assert found(a, "/b/c/c") == ("/c", {})
    missing(a, "/b/loop/b")
    a.mount("/again", c)
    assert found(a, "/again/c") == ("/c", {})


def test_inner_parameter_wins():
    child = build("/{id}/{x:int}")
    router = Router()
    router.mount("/{id:int}/{x}", child)
    assert found(router, "/1/p/two/3")[1] == {"id": "two", "x": 3}


def test_bad_prefixes_and_names():
    router, child = Router(), build("/a")
    for prefix in ("/x/{p:path}", "/{p:path}", "x", "/x/", "", "/{a}/{a:int}"):
        with pytest.raises(PatternError):
            router.mount(prefix, child)
    for name in ("", "a:b", ":"):
        with pytest.raises(errors.MountError):
            router.mount("/x", child, name=name)
        with pytest.raises(PatternError):
            router.add("GET", "/x", None, name=name)
    missing(router, "/x/a")
    missing(router, "/x")


def test_match_names():
    item = build(("/item", "item"), "/plain")
    shop, eu, router = Router(), Router(), Router()
    shop.mount("/", item)
    eu.mount("/shop", shop, name="shop")
    router.mount("/eu", eu, name="eu")
    assert router.match("GET", "/eu/shop/item").name == "eu:shop:item"
    assert eu.match("GET", "/shop/item").name == "shop:item"
    assert shop.match("GET", "/item").name == "item"
    assert router.match("GET", "/eu/shop/plain").name is None
    assert router.path_for("eu:shop:item") == "/eu/shop/item"
    for name in ("item", "shop:item", "eu:item", "eu:", "eu:shop", ""):
        with pytest.raises(errors.BuildError):
            router.path_for(name)


def test_path_for_encodes():
    router = build(("/a b/{s}/{n:int}/{p:path}", "x"), ("/", "home"))
    path = router.path_for("x", s="ü/é?", n=7, p="one/two three/~.-_")
    assert path == "/a%20b/%C3%BC%2F%C3%A9%3F/7/one/two%20three/~.-_"
    assert found(router, path)[1] == {"s": "ü/é?", "n": 7, "p": "one/two three/~.-_"}
    assert router.path_for("home") == "/"


def test_path_for_through_mounts():
    child = build(("/", "index"), ("/{id:int}", "item"))
    router = Router()
    router.mount("/shop/{town}", child, name="shop")
    router.mount("/", child)
    assert router.path_for("shop:index", town="Bad Ems") == "/shop/Bad%20Ems"
    assert router.path_for("shop:item", town="x", id=0) == "/shop/x/0"
    assert router.path_for("index") == "/" and router.path_for("item", id=12) == "/12"


def test_path_for_picks_by_parameters():
    router = build(("/all/{page:int}", "list"), ("/all", "list"), ("/every", "list"), ("/by/{tag}", "list"))
    assert router.path_for("list") == "/all"
    assert router.path_for("list", tag="t") == "/by/t"
    assert router.path_for("list", page=2) == "/all/2"
    for params in ({"tag": "t", "page": 2}, {"other": 1}):
        with pytest.raises(errors.BuildError):
            router.path_for("list", **params)


def test_first_route_with_these_parameters_decides():
    router = build(("/n/{v:int}", "x"), ("/s/{v}", "x"))
    with pytest.raises(errors.BuildError):
        router.path_for("x", v="word")


def test_repeated_parameter_name_takes_one_value():
    router = Router()
    router.mount("/{id}", build(("/sub/{id}", "x"), ("/num/{id:int}", "n")))
    assert router.path_for("x", id="a") == "/a/sub/a"
    for value in ("5", 5):
        with pytest.raises(errors.BuildError):
            router.path_for("n", id=value)


@pytest.mark.parametrize(
    "name, value",
    [("s", ""), ("s", 5), ("s", None), ("s", b"x"), ("n", -1), ("n", True), ("n", "5"), ("n", 1.0),
     ("p", ""), ("p", "/a"), ("p", "a/"), ("p", "a//b"), ("p", "/"), ("p", ["a"])],
    ids=str,
)
def test_values_that_do_not_suit(name, value):
    router = build(("/s/{v}", "s"), ("/n/{v:int}", "n"), ("/p/{v:path}", "p"))
    assert issubclass(errors.BuildError, RouteError)
    with pytest.raises(errors.BuildError):
        router.path_for(name, v=value)


def test_parameters_called_name_and_self():
    router = build(("/{name}/{self}", "x"))
    assert router.path_for("x", **{"name": "a", "self": "b"}) == "/a/b"


def test_route_without_name_is_not_found_by_none():
    with pytest.raises(errors.BuildError):
        build("/").path_for(None)
