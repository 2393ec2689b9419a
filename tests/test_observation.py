from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeenv import tokens
from codeenv.observation import MIN_TOKENS, TokenCounter, clean, cut, render

FILE = "/tmp/x/out.log"
MARKER = re.compile(
    r"^\[\.\.\. ([\d,]+) (characters|bytes)(?: \(about ([\d,]+) tokens\))? omitted.*\.\.\.\]$", re.MULTILINE
)
LINES = "".join(f"line {i}: all is well\n" for i in range(5000))


class Bytes(TokenCounter):
    """As many tokens as a text can have."""

    def _count(self, piece: str) -> int:
        return len(piece.encode("utf-8", "surrogatepass"))


class Coarse(TokenCounter):
    """Long tokens, as of blanks."""

    def _count(self, piece: str) -> int:
        return -(-len(piece) // 60)


class Uneven(TokenCounter):
    """What parts count tells little about the whole."""

    def _count(self, piece: str) -> int:
        return len(piece) // 3 + zlib.crc32(piece.encode("utf-8", "surrogatepass")) % 9 + 1 if piece else 0


@pytest.fixture(autouse=True, scope="module")
def estimate() -> Iterator[None]:
    """The estimate, whatever this host's cache holds."""
    patch = pytest.MonkeyPatch()
    patch.setattr(tokens, "_load", lambda: None)
    yield
    patch.undo()


COUNTERS = {"estimate": TokenCounter(), "bytes": Bytes(), "coarse": Coarse(), "uneven": Uneven()}
every_counter = pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS.keys())
COUNTER = COUNTERS["estimate"]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def parts(result: str) -> tuple[str, str, re.Match[str]]:
    """Before the marker, after it, and the marker, of which there is one, on a line of its own."""
    found = list(MARKER.finditer(result))
    assert len(found) == 1, result
    (marker,) = found
    return result[: marker.start()], result[marker.end() + 1 :], marker


class TestCut:
    @pytest.mark.parametrize("text", ["", "a", "one\ntwo\n", LINES[:300]], ids=["empty", "letter", "lines", "more"])
    def test_what_fits_is_unchanged(self, text: str) -> None:
        assert cut(text, 200, counter=COUNTER, where=FILE, omitted_bytes=9) == text

    @pytest.mark.parametrize("budget", [-1, 0, 1, MIN_TOKENS - 1])
    def test_too_small_a_budget(self, budget: int) -> None:
        with pytest.raises(ValueError, match="at least 32"):
            cut("", budget, counter=COUNTER)
        with pytest.raises(ValueError, match="at least 32"):
            render(b"", total=0, tokens=budget, counter=COUNTER)

    def test_keeps_whole_lines_at_both_ends_and_says_what_is_gone(self) -> None:
        result = cut(LINES, 1000, counter=COUNTER, where=FILE)
        before, after, marker = parts(result)
        assert LINES.startswith(before)
        assert LINES.endswith(after)
        assert before.endswith("well\n")
        assert after.startswith("line ")
        assert f"omitted; the full output is in {FILE} ...]" in marker[0]
        assert number(marker[1]) == len(LINES) - len(before) - len(after)
        assert marker[2] == "characters"
        assert number(marker[3]) == pytest.approx(COUNTER.count(LINES) - 1000, rel=0.1)
        assert 0.9 * 1000 <= COUNTER.count(result) <= 1000
        assert len(before) == pytest.approx(len(after), rel=0.1)

    def test_one_long_line_is_cut_inside_and_the_marker_has_its_own_line(self) -> None:
        before, after, _ = parts(cut("word " * 5000, 100, counter=COUNTER))
        assert before.endswith("\n")
        assert "word word" in before
        assert "word word" in after

    def test_without_a_file_it_names_none(self) -> None:
        assert "output is in" not in cut(LINES, 100, counter=COUNTER)

    @pytest.mark.parametrize(
        ("where", "shown"),
        [
            ("/tmp/{x}", "full output is in /tmp/{x} "),
            ("a\nb", r"full output is in a\nb "),
            ("\ud800\x1b[31m", "full output is in ? "),
            ("/long" * 50, " omitted ...]"),
        ],
        ids=["braces", "newline", "not-text", "too-long"],
    )
    def test_odd_file_names(self, where: str, shown: str) -> None:
        result = cut(LINES, 100, counter=COUNTER, where=where)
        assert shown in parts(result)[2][0]
        result.encode()

    def test_bytes_that_are_missing_already_are_added(self) -> None:
        text = "é\n" * 5000
        before, after, marker = parts(cut(text, 100, counter=COUNTER, omitted_bytes=1_000_000))
        assert marker[2] == "bytes"
        assert number(marker[1]) == 1_000_000 + 3 * (5000 - (len(before) + len(after)) // 2)

    @pytest.mark.parametrize(
        "unit",
        ["e\u0301", "👩‍👩‍👧", "👍🏽", "🇫🇷 ", "❤️", "कि"],
        ids=["combining", "zwj", "skin", "flag", "variation", "marks"],
    )
    @pytest.mark.parametrize("shift", range(4))
    def test_characters_stay_whole(self, unit: str, shift: int) -> None:
        text = "." * shift + unit * 400 + "." * shift
        before, after, _ = parts(cut(text, 64, counter=COUNTER))
        # On a single line only characters show where the cut was.
        assert before.removesuffix("\n").replace(unit.strip(), "").strip(". ") == ""
        assert after.replace(unit.strip(), "").strip(". ") == ""

    @every_counter
    @pytest.mark.parametrize("budget", [32, 33, 50, 100, 1000])
    @pytest.mark.parametrize("where", ["", FILE, "/p" * 100], ids=["no-file", "file", "long-file"])
    @pytest.mark.parametrize("omitted", [0, 10**12], ids=["all", "omitted"])
    def test_is_within_every_budget(self, counter: TokenCounter, budget: int, where: str, omitted: int) -> None:
        if isinstance(counter, Bytes):
            budget += 40  # its marker takes as much
        for text in (LINES, "x" * 9999, "漢" * 5000, "🎉" * 5000, "\n" * 99_999, " " * 99_999, "漢" * 3000 + LINES):
            result = cut(text, budget, counter=counter, where=where, omitted_bytes=omitted)
            assert counter.count(result) <= budget
            if result != text:
                parts(result)

    @given(
        text=st.text(st.characters(codec="utf-8"), max_size=3000) | st.text("ab \n\u0301\u200d🎉漢\t", max_size=3000),
        budget=st.integers(32, 400),
        where=st.sampled_from(["", FILE]),
        name=st.sampled_from(["estimate", "coarse", "uneven"]),
    )
    @settings(max_examples=200, deadline=None)
    def test_properties(self, text: str, budget: int, where: str, name: str) -> None:
        counter = COUNTERS[name]
        result = cut(text, budget, counter=counter, where=where)
        assert counter.count(result) <= budget
        assert json.loads(json.dumps(result).encode()) == result == result.encode().decode()
        assert cut(result, budget, counter=counter, where=where) == result
        assert (result == text) == (counter.count(text) <= budget)


class TestRender:
    def kept(self, data: bytes, limit: int) -> bytes:
        """What a sandbox keeps of `data` under an output limit."""
        return data if len(data) <= limit else data[: limit - limit // 2] + data[len(data) - limit // 2 :]

    @pytest.mark.parametrize("total", [0, 5, 12], ids=["less", "fewer", "same"])
    def test_all_of_it(self, total: int) -> None:
        assert render(b"\x1b[1ma\x1b[m\r\nbc", total=total, tokens=99, counter=COUNTER, saved_to=FILE) == "a\nbc"

    def test_names_what_the_sandbox_left_out(self) -> None:
        data = b"a\n" * 10 + b"b\n" * 1000 + b"c\n" * 10
        result = render(self.kept(data, 40), total=len(data), tokens=200, counter=COUNTER, saved_to=FILE)
        marker = f"[... 2,000 bytes omitted; the full output is in {FILE} ...]\n"
        assert result == "a\n" * 10 + marker + "c\n" * 10

    @pytest.mark.parametrize("character", ["é", "漢", "🎉"], ids=["two-bytes", "three-bytes", "four-bytes"])
    @pytest.mark.parametrize("limit", range(40, 52))
    def test_a_character_across_the_gap_leaves_no_rubbish(self, character: str, limit: int) -> None:
        data = (character * 500).encode()
        before, after, marker = parts(render(self.kept(data, limit), total=len(data), tokens=500, counter=COUNTER))
        assert set(before + after) == {character, "\n"}
        assert number(marker[1]) == len(data) - len((before[:-1] + after).encode())

    def test_the_parts_are_cleaned_apart(self) -> None:
        # The second part must not overwrite the first, nor an open sequence swallow the marker.
        result = render(b"first\x1b]0;title" + b"56%\r\x1b[2K100%\n"[:14], total=99, tokens=99, counter=COUNTER)
        before, after, _ = parts(result)
        assert before.startswith("first")
        assert after == "100%\n"

    def test_states_all_that_is_missing_when_cut_again(self) -> None:
        data = LINES.encode()
        result = render(self.kept(data, 65536), total=len(data), tokens=500, counter=COUNTER, saved_to=FILE)
        before, after, marker = parts(result)
        assert number(marker[1]) == len(data) - len(before) - len(after)
        assert 450 <= COUNTER.count(result) <= 500

    def test_a_side_uses_what_the_other_leaves(self) -> None:
        noise = b"".join(b"\r%d%%" % i for i in range(10_000))
        head, tail = noise[:30_000], LINES.encode()[:30_000]
        for data in (head + tail, tail + head):
            assert COUNTER.count(render(data, total=10**6, tokens=500, counter=COUNTER)) > 450

    @pytest.mark.parametrize("data", [b"", b"a", b"\xc3", b"\xa9\xa9"], ids=repr)
    def test_almost_nothing_kept(self, data: bytes) -> None:
        assert "bytes omitted" in render(data, total=10**6, tokens=32, counter=COUNTER)

    @given(
        data=st.binary(max_size=2000)
        | st.lists(st.sampled_from([b"ab\n", b"\r", b"\x1b[2K", "漢🎉".encode()])).map(b"".join),
        extra=st.integers(0, 10**9),
        budget=st.integers(32, 400),
    )
    @settings(max_examples=200, deadline=None)
    def test_properties(self, data: bytes, extra: int, budget: int) -> None:
        result = render(data, total=len(data) + extra, tokens=budget, counter=COUNTER, saved_to=FILE)
        assert COUNTER.count(result) <= budget
        assert json.loads(json.dumps(result).encode()) == result == result.encode().decode()
        assert clean(result.encode()) == result
        assert ("bytes omitted" in result) == (extra > 0)
        assert render(data, total=len(data) + extra, tokens=budget, counter=COUNTER, saved_to=FILE) == result


@pytest.mark.parametrize(
    "unit", [b"line of a log 17\n", b"\x1b[32mok\x1b[0m\r\n", b"\r10% |###", b"\x00", "漢🎉".encode()], ids=repr
)
def test_64_kib_take_milliseconds(unit: bytes) -> None:
    data = (unit * 65536)[:65536]
    times: list[float] = []
    for _ in range(5):
        started = time.process_time()
        render(data, total=10**6, tokens=4000, counter=COUNTER, saved_to=FILE)
        times.append(time.process_time() - started)
    assert min(times) < 0.025  # 2 to 5 ms on an idle core
