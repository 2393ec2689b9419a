import pytest
from slots import free

DAY = (540, 1020)


@pytest.mark.parametrize(
    ("busy", "expected"),
    [
        ([], [(540, 1020)]),
        ([(600, 660)], [(540, 600), (660, 1020)]),
        ([(540, 1020)], []),
        ([(600, 660), (660, 720)], [(540, 600), (720, 1020)]),
        ([(600, 700), (650, 720)], [(540, 600), (720, 1020)]),
        ([(700, 720), (600, 660)], [(540, 600), (660, 700), (720, 1020)]),
        ([(600, 900), (650, 660)], [(540, 600), (900, 1020)]),
        ([(500, 600), (1000, 1100)], [(600, 1000)]),
        ([(400, 500), (1100, 1200)], [(540, 1020)]),
        ([(600, 600)], [(540, 1020)]),
    ],
    ids=[
        "nothing", "one", "all-day", "touching", "overlapping", "unordered", "nested", "over-the-edges", "outside",
        "without-length",
    ],
)
def test_free(busy, expected):
    assert free(busy, *DAY) == expected


def test_busy_stays_as_it_is():
    busy = [(700, 720), (600, 660)]
    free(busy, *DAY)
    assert busy == [(700, 720), (600, 660)]


@pytest.mark.parametrize(("busy", "day"), [([], (1020, 540)), ([(700, 600)], DAY)], ids=["day", "slot"])
def test_invalid(busy, day):
    with pytest.raises(ValueError):
        free(busy, *day)
