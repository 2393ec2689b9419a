import pytest

from firmware import best, matches

ASCENDING = ["1.9.0", "1.10.0-rc2", "1.10.0-rc10", "1.10.0", "1.10.0+fix1", "1.10.0+fix2", "1.10.0+fix10", "1.10.1-rc1", "2.0.0"]


def test_order_of_versions():
    opened = ", >=0.0.0-rc1"  # no effect by itself
    for i, low in enumerate(ASCENDING):
        for j, high in enumerate(ASCENDING):
            if "-rc" in high and low.partition("-")[0] != high.partition("-")[0]:
                continue
            for sign, want in (("<", j < i), ("<=", j <= i), (">", j > i), (">=", j >= i), ("=", j == i)):
                if "-rc" in high and "-rc" not in low:
                    want = False
                assert matches(sign + low + opened, high) is want, f"{high} {sign} {low}"


YES_NO = {
    "exact-and-order": [
        ("1.2.3", "1.2.3", True),
        ("=1.2.3", "1.2.3+fix1", False),
        ("!=1.2.3", "1.2.3+fix1", True),
        ("> 1.2.3", "1.2.3+fix1", True),
        ("<=1.2.3", "1.2.3+fix1", False),
    ],
    "tilde": [
        ("~1.2.3", "1.2.9", True),
        ("~1.2.3", "1.2.2", False),
        ("~1.2.3", "1.3.0", False),
        ("~1.2.3+fix2", "1.2.3+fix1", False),
    ],
    "caret": [
        ("^1.2.3", "1.9.0+fix3", True),
        ("^1.2.3", "2.0.0", False),
        ("^0.2.3", "0.3.0", True),
    ],
    "wildcards": [
        ("*", "7.0.0+fix1", True),
        ("1.*", "1.0.0", True),
        ("1.*", "11.0.0", False),
        ("1.1.*", "1.10.0", False),
        ("!=1.1.*", "1.1.5+fix1", False),
        ("!= 1.*", "2.1.0", True),
    ],
    "combined": [
        (">=1.0.0,<2.0.0", "2.0.0", False),
        (">=1.0.0 , != 1.5.0 , <2.0.0", "1.5.0", False),
        (" 1.0.0 | >=3.0.0 , <4.0.0 ", "3.5.0", True),
        (" 1.0.0 | >=3.0.0 , <4.0.0 ", "2.5.0", False),
    ],
}  # fmt: skip
CANDIDATES = {
    "opened": [
        (">=2.0.0-rc1", "2.0.0-rc2", True),
        ("2.0.0-rc2", "2.0.0-rc2", True),
    ],
    "opened-elsewhere": [
        (">=1.0.0", "2.0.0-rc2", False),
        ("*", "2.0.0-rc2", False),
        (">=2.0.1-rc1 | *", "2.0.0-rc2", False),
        (">=2.0.0-rc1", "2.1.0-rc1", False),
        (">=2.0.0-rc1", "2.1.0", True),
        ("<2.0.0", "2.0.0-rc1", False),
    ],
    "unequal-does-not-open": [
        ("*, !=2.0.0-rc1", "2.0.0-rc2", False),
    ],
    "mixed": [
        ("2.*, <2.0.0-rc3", "2.0.0-rc2", True),
        ("=2.0.0-rc1 | >=1.0.0", "2.0.0-rc2", False),
        ("^2.0.0-rc1, !=2.0.0-rc2", "2.0.0-rc2", False),
        ("~2.0.0-rc1", "2.0.0-rc1", True),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", YES_NO)
def test_matches(group):
    for rule, version, want in YES_NO[group]:
        assert matches(rule, version) is want, f"{version!r} against {rule!r}"


@pytest.mark.parametrize("group", CANDIDATES)
def test_candidate_condition(group):
    for rule, version, want in CANDIDATES[group]:
        assert matches(rule, version) is want, f"{version!r} against {rule!r}"


def refused(function, *args):
    try:
        function(*args)
    except ValueError:
        return True
    return False


BAD_VERSIONS = {
    "parts": ["", "1", "1.2", "1.2.3.4", "v1.2.3", "-1.2.3"],
    "numbers": ["01.2.3", "1.2.03", "1.2.\u0663"],
    "suffixes": ["1.2.3-rc0", "1.2.3-rc", "1.2.3-rc01", "1.2.3+fix", "1.2.3-fix1", "1.2.3-rc1+fix1", "1.2.3-RC1"],
    "blanks": [" 1.2.3", "1.2.3\n"],
}


@pytest.mark.parametrize("group", BAD_VERSIONS)
def test_malformed_version(group):
    for version in BAD_VERSIONS[group]:
        assert refused(matches, "*", version), f"version {version!r}"
        assert refused(best, "1.0.0", ["1.0.0", version]), f"version {version!r} given to best"


BAD_RULES = {
    "empty-parts": ["", " ", "|", "* |", "| *", "*,", ", *", "*,,*"],
    "wildcards": ["=1.*", ">=1.2.*", "~1.*", "!=*", "1.2.3.*", "*.1", "01.*", "1.2. *"],
    "versions": ["1.2", "~1.2", "1.2.3 1.2.4", "1. 2.3"],
    "operators": ["==1.2.3", "=>1.2.3", "> =1.2.3", "! =1.2.3", "!1.2.3", "!"],
    "other-blanks": ["1.2.3\n", "\t*"],
}


@pytest.mark.parametrize("group", BAD_RULES)
def test_malformed_rule(group):
    for rule in BAD_RULES[group]:
        assert refused(matches, rule, "1.2.3"), f"rule {rule!r}"


def test_malformed_part_is_found_although_the_answer_is_known():
    for rule in ("* | oops", "9.9.9, oops", "1.2.3 | 1.2", "!=1.2.3, >=1"):
        with pytest.raises(ValueError):
            matches(rule, "1.2.3")
    with pytest.raises(ValueError):
        matches("2.0.0", "nonsense")


def test_best():
    versions = ["1.10.0", "1.9.0", "1.10.0+fix2", "2.0.0-rc1", "1.10.0+fix10", "0.1.0"]
    assert best("*", versions) == "1.10.0+fix10"
    assert best("<=1.10.0", iter(versions)) == "1.10.0"
    assert best(">=2.0.0-rc1 | 0.*", versions) == "2.0.0-rc1"
    assert best(">=3.0.0", versions) is None
    assert best("*", []) is None


def test_best_checks_the_rule_without_versions():
    with pytest.raises(ValueError):
        best("* | ", [])
