import random

import pytest

from digest import Message, Row, build_digest


def mails(*lines):
    """Each line: id parent author time; '-' for no parent."""
    result = []
    for line in lines:
        id, parent, author, time = line.split()
        result.append(Message(id, None if parent == "-" else parent, author, int(time)))
    return result


def ids(rows):
    return [row.id for row in rows]


def by_id(rows):
    return {row.id: row for row in rows}


def test_nothing():
    assert build_digest([]) == []


def test_single_thread():
    rows = build_digest(mails("a - ann 5", "b a bob 9", "c b ann 7", "d a cy 8"))
    assert rows == [
        Row("a", 0, 2, 4, 9, "a", 3),
        Row("d", 1, 0, 1, 8, "a", 1),
        Row("b", 1, 1, 2, 9, "a", 2),
        Row("c", 2, 0, 1, 7, "a", 1),
    ]
    assert all(type(row) is Row for row in rows)


def test_any_iterable_read_once_and_unchanged():
    messages = mails("a - x 1", "b a y 2", "a - z 3")
    copy = list(messages)
    rows = build_digest(m for m in messages)
    assert rows == build_digest(messages) == build_digest(tuple(messages))
    assert messages == copy


def test_threads_by_latest_activity_ties_in_list_order():
    rows = build_digest(mails("p - x 4", "q - x 1", "r - x 4", "s q x 9", "t - x 4", "u - x 9"))
    assert ids(rows) == ["q", "s", "u", "p", "r", "t"]


def test_replies_by_time_then_author_then_list_order():
    rows = build_digest(mails("r - x 0", "1 r bob 5", "2 r ann 5", "3 r bob 5", "4 r ann 5", "5 r zoe 1", "6 r Zed 5"))
    assert ids(rows) == ["r", "5", "6", "2", "4", "1", "3"]


def test_parent_later_in_the_list():
    rows = build_digest(mails("c b x 3", "b a y 2", "a - z 1"))
    assert rows == [Row("a", 0, 1, 3, 3, "a", 3), Row("b", 1, 1, 2, 3, "a", 2), Row("c", 2, 0, 1, 3, "a", 1)]


def test_missing_parent_starts_a_thread():
    rows = by_id(build_digest(mails("a gone x 1", "b a x 2")))
    assert rows["a"] == Row("a", 0, 1, 2, 2, "a", 1)
    assert rows["b"].root == "a"


def test_empty_id():
    with pytest.raises(ValueError):
        build_digest([Message("a", None, "x", 1), Message("", "a", "x", 2)])


def test_empty_parent_is_a_missing_parent():
    assert build_digest([Message("a", "", "x", 1)]) == [Row("a", 0, 0, 1, 1, "a", 1)]


def test_newer_version_replaces_content_but_not_position():
    rows = build_digest(mails("a - x 1", "b - x 2", "k a old 3", "k b new 8", "k - newest 8", "k b older 7"))
    assert ids(rows) == ["a", "k", "b"]
    assert by_id(rows)["k"] == Row("k", 1, 0, 1, 8, "a", 1)
    assert by_id(rows)["a"].voices == 2


def test_newer_version_keeps_its_place_in_the_list():
    rows = build_digest(mails("a - x 1", "b - x 7", "a - y 7"))
    assert ids(rows) == ["a", "b"]


def test_reply_to_oneself():
    assert build_digest(mails("a a x 1", "b a y 0")) == [Row("a", 0, 1, 2, 1, "a", 2), Row("b", 1, 0, 1, 0, "a", 1)]


def test_ring_members_all_start_threads():
    rows = by_id(build_digest(mails("a c x 1", "b a x 2", "c b x 3", "t a y 9", "u t z 4", "v b x 5")))
    assert {id: (row.depth, row.root, row.size, row.replies) for id, row in rows.items()} == {
        "a": (0, "a", 3, 1),
        "b": (0, "b", 2, 1),
        "c": (0, "c", 1, 0),
        "t": (1, "a", 2, 1),
        "u": (2, "a", 1, 0),
        "v": (1, "b", 1, 0),
    }
    assert rows["a"].voices == 3


def test_tail_into_a_ring_met_before_the_ring():
    rows = build_digest(mails("z y x 1", "y r x 2", "r s x 3", "s r x 4"))
    assert ids(rows) == ["s", "r", "y", "z"]
    assert by_id(rows)["z"] == Row("z", 2, 0, 1, 1, "r", 1)


def test_latest_may_be_the_message_itself_and_times_may_be_negative():
    rows = build_digest(mails("a - x -1", "b a x -9", "c - x -5"))
    assert [(row.id, row.latest) for row in rows] == [("a", -1), ("b", -9), ("c", -5)]


# -- large archives


def shuffled(messages, seed=3):
    random.Random(seed).shuffle(messages)
    return messages


SIZE = 30_000


def test_one_very_deep_thread():
    rows = build_digest(shuffled([Message(f"m{n}", f"m{n - 1}", f"a{n % 50}", n) for n in range(SIZE)]))
    assert ids(rows) == [f"m{n}" for n in range(SIZE)]
    assert rows[0] == Row("m0", 0, 1, SIZE, SIZE - 1, "m0", 50)
    assert rows[-7] == Row(f"m{SIZE - 7}", SIZE - 7, 1, 7, SIZE - 1, "m0", 7)


def test_one_very_broad_thread():
    messages = [Message("top", None, "a0", 0), *(Message(f"m{n}", "top", f"a{n % 50}", n) for n in range(1, SIZE))]
    rows = build_digest(shuffled(messages))
    assert ids(rows) == ["top", *(f"m{n}" for n in range(1, SIZE))]
    assert rows[0] == Row("top", 0, SIZE - 1, SIZE, SIZE - 1, "top", 50)


def test_one_very_long_ring_with_tails():
    ring = [Message(f"r{n}", f"r{(n + 1) % 10_000}", "a", n) for n in range(10_000)]
    tails = [Message(f"t{n}", f"t{n - 1}" if n % 100 else f"r{n}", "b", -n) for n in range(10_000)]
    rows = by_id(build_digest(shuffled(ring + tails)))
    assert rows["r100"] == Row("r100", 0, 1, 101, 100, "r100", 2)
    assert rows["r101"] == Row("r101", 0, 0, 1, 101, "r101", 1)
    assert rows["t199"] == Row("t199", 100, 0, 1, -199, "r100", 1)


def test_many_versions_of_few_messages():
    messages = [Message(f"m{n % 7}", f"m{n % 7 - 1}", f"a{n}", n) for n in range(SIZE)]
    rows = build_digest(messages)
    assert ids(rows) == [f"m{n}" for n in range(7)]
    assert rows[0] == Row("m0", 0, 1, 7, SIZE - 1, "m0", 7)
