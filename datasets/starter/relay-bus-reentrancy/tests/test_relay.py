import pytest

import relay.topics
from relay import Bus, RelayError


@pytest.fixture
def bus():
    return Bus()


@pytest.fixture
def log():
    return []


def noting(log, name):
    return lambda topic, payload: log.append(name)


PATTERNS = {
    "rest": [
        ("orders.**", "orders", True),
        ("orders.**", "orders.new.eu", True),
        ("orders.**", "order", False),
    ],
    "start": [
        ("**.error", "error", True),
        ("**.error", "a.b.error", True),
        ("**.error", "a.error.b", False),
    ],
    "middle": [
        ("a.**.z", "a.z", True),
        ("a.**.z", "a.z.b.z", True),
        ("a.**.z", "a", False),
    ],
    "double-with-others": [
        ("**", "a.b", True),
        ("**.*", "a", True),
        ("a.**.*", "a", False),
        ("**.**", "a", True),
    ],
    "single": [
        ("*", "a.b", False),
        ("a.*", "a", False),
    ],
    "plain": [
        ("a.b", "a", False),
        ("a", "a.b", False),
        ("a*.b", "ax.b", False),
    ],
}


@pytest.mark.parametrize("group", PATTERNS)
def test_patterns(group):
    for pattern, topic, want in PATTERNS[group]:
        bus = Bus()
        bus.subscribe(pattern, lambda topic, payload: None)
        assert bus.publish(topic) == int(want), f"{pattern!r} and {topic!r}"


def test_invalid_names(bus):
    for name in ("", ".", "a.", ".a", "a..b"):
        with pytest.raises(ValueError):
            bus.subscribe(name, print)
        with pytest.raises(ValueError):
            bus.publish(name)


def test_arguments_and_order(bus, log):
    for name, priority in [("a", 0), ("b", 5), ("c", 0), ("d", -1), ("e", 5), ("f", 0)]:
        bus.subscribe("t", noting(log, name), priority=priority)
    bus.subscribe("t", lambda *args: log.append(args), priority=9)
    assert bus.publish("t", {"id": 7}) == 7
    assert log == [("t", {"id": 7}), "b", "e", "a", "c", "f", "d"]


def test_cancelling_oneself_affects_nobody_else(bus, log):
    subs = {}

    def leave(topic, payload):
        log.append("first")
        subs["first"].cancel()

    subs["first"] = bus.subscribe("t", leave)
    bus.subscribe("t", noting(log, "second"))
    bus.subscribe("t", noting(log, "third"))
    assert bus.publish("t") == 3
    assert bus.publish("t") == 2
    assert log == ["first", "second", "third", "second", "third"]


def test_cancelled_before_its_turn(bus, log):
    subs = []
    bus.subscribe("t", lambda *_: subs[0].cancel())
    subs.append(bus.subscribe("t", noting(log, "victim")))
    bus.subscribe("t", noting(log, "last"))
    assert bus.publish("t") == 2
    assert log == ["last"] and subs[0].active is False


def test_cancel_reaches_every_topic_published_before(bus, log):
    sub = bus.subscribe("a.*", noting(log, "x"))
    assert [bus.publish(t) for t in ("a.b", "a.c", "a.d")] == [1, 1, 1]
    assert sub.active is True
    sub.cancel()
    sub.cancel()
    assert [bus.publish(t) for t in ("a.d", "a.c", "a.b")] == [0, 0, 0]
    assert sub.active is False and len(log) == 3


def test_subscribed_during_delivery(bus, log):
    def first(topic, payload):
        if payload == "outer":
            bus.subscribe("t", noting(log, "late"), priority=-1)
            log.append(bus.publish("t", "inner"))

    bus.subscribe("t", first)
    assert bus.publish("t", "outer") == 1, "the late one joins the inner delivery only"
    assert log == ["late", 2]


def test_once(bus, log):
    sub = bus.subscribe("t", noting(log, "once"), once=True)
    bus.subscribe("t", noting(log, "always"))
    assert [bus.publish("t"), bus.publish("t")] == [2, 1]
    assert log == ["once", "always", "always"] and sub.active is False


def test_once_that_publishes(bus, log):
    def again(topic, payload):
        log.append(sub.active)
        assert len(log) < 5, "called again"
        bus.publish("t")

    sub = bus.subscribe("t", again, once=True)
    assert bus.publish("t") == 1
    assert log == [False], "cancelled before the call, and called once"


def test_once_used_up_by_an_inner_delivery(bus, log):
    bus.subscribe("t", lambda topic, payload: bus.publish("t", "inner") if payload == "outer" else None, priority=1)
    bus.subscribe("t", lambda topic, payload: log.append(payload), once=True)
    assert bus.publish("t", "outer") == 1
    assert log == ["inner"]


def test_once_that_fails(bus):
    def fail(topic, payload):
        raise KeyError("no")

    bus.subscribe("t", fail, once=True)
    with pytest.raises(RelayError):
        bus.publish("t")
    assert bus.publish("t") == 0


def test_two_once_handlers_in_a_row(bus, log):
    for name in "abcd":
        bus.subscribe("t", noting(log, name), once=True)
    assert bus.publish("t") == 4
    assert log == list("abcd")


def test_errors_are_collected_in_order(bus, log):
    one, two = ValueError("1"), OSError("2")

    def failing(error):
        def handler(topic, payload):
            raise error

        return handler

    bus.subscribe("t", failing(two), priority=-1)
    bus.subscribe("t", failing(one))
    bus.subscribe("t", noting(log, "ok"), priority=-2)
    with pytest.raises(RelayError) as caught:
        bus.publish("t")
    assert caught.value.errors == [one, two] and log == ["ok"]
    bus.subscribe("outer", lambda *_: bus.publish("t"))
    with pytest.raises(RelayError) as caught:
        bus.publish("outer")
    (inner,) = caught.value.errors
    assert isinstance(inner, RelayError) and inner.errors == [one, two]


def test_interrupts_go_through(bus, log):
    def interrupt(topic, payload):
        raise KeyboardInterrupt

    bus.subscribe("t", interrupt, once=True)
    bus.subscribe("t", noting(log, "never"))
    with pytest.raises(KeyboardInterrupt):
        bus.publish("t")
    assert log == []
    assert bus.publish("t") == 1


def test_matching_is_cached(bus, monkeypatch):
    calls = []
    real = relay.topics.topic_matches

    def counting(*args):
        calls.append(args)
        return real(*args)

    bus.subscribe("a", lambda *_: None)
    bus.subscribe("b", lambda *_: None)
    monkeypatch.setattr(relay.topics, "topic_matches", counting)
    bus.publish("a")
    assert calls, "the registry no longer matches by relay.topics.topic_matches"
    calls.clear()
    for _ in range(5):
        assert bus.publish("a") == 1
    assert calls == []
