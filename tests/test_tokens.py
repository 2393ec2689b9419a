from __future__ import annotations

import hashlib
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeenv import tokens
from codeenv.tokens import TokenCounter

NAME = hashlib.sha1(b"https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken").hexdigest()


class Words:
    """In place of tiktoken's encoding: a token for each word."""

    def encode(self, text: str, *, disallowed_special: object) -> list[int]:
        assert disallowed_special == ()
        assert len(text) <= 4096
        return [0] * len(text.split())


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """As in a new process: no table, nothing settled, and a network that nobody may touch."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    tokens._load.cache_clear()
    yield
    tokens._load.cache_clear()


def test_without_a_table_it_estimates_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert TokenCounter().count("def f(x):\n    return x + 1\n") == TokenCounter().count(
            "def f(x):\n    return x + 1\n"
        )
    assert not TokenCounter().exact
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "tiktoken.get_encoding('o200k_base')" in caplog.text


def test_making_a_counter_reads_nothing(caplog: pytest.LogCaptureFixture) -> None:
    TokenCounter()
    assert tokens._load.cache_info().currsize == 0
    assert not caplog.records


def test_a_damaged_table_is_neither_used_nor_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / NAME).write_bytes(b"half a table")
    assert not TokenCounter().exact
    assert (tmp_path / NAME).read_bytes() == b"half a table"
    assert "is not tiktoken's o200k_base table" in caplog.text


@pytest.mark.parametrize("fault", ["unreadable", "tiktoken-fails"])
def test_no_fault_gets_out(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"table"
    (tmp_path / NAME).write_bytes(data)
    monkeypatch.setattr(tokens, "_SHA256", hashlib.sha256(data).hexdigest())

    def fail(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(*(Path, "read_bytes", fail) if fault == "unreadable" else ("tiktoken.get_encoding", fail))
    assert TokenCounter().count("a b") == 2


def test_a_table_in_the_cache_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"table"
    (tmp_path / NAME).write_bytes(data)
    monkeypatch.setattr(tokens, "_SHA256", hashlib.sha256(data).hexdigest())
    monkeypatch.setattr("tiktoken.get_encoding", lambda name: Words())  # pyright: ignore[reportUnknownLambdaType]
    counter = TokenCounter()
    assert counter.exact
    assert counter.count("one two " * 10_000) == pytest.approx(20_000, abs=40)  # in pieces: see Words
    assert counter.count("<|endoftext|> \ud800") == 2


def test_what_was_settled_first_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = TokenCounter().count("extraordinarily")
    (tmp_path / NAME).write_bytes(b"table")
    monkeypatch.setattr(tokens, "_SHA256", hashlib.sha256(b"table").hexdigest())
    assert TokenCounter().count("extraordinarily") == before
    assert not TokenCounter().exact


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"TIKTOKEN_CACHE_DIR": "/a", "DATA_GYM_CACHE_DIR": "/b"}, "/a"),
        ({"DATA_GYM_CACHE_DIR": "/b"}, "/b"),
        ({}, "/tmp-of-this-host/data-gym-cache"),
        ({"TIKTOKEN_CACHE_DIR": "", "DATA_GYM_CACHE_DIR": "/b"}, None),
    ],
    ids=["first", "second", "default", "off"],
)
def test_looks_where_tiktoken_looks(env: dict[str, str], folder: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/tmp-of-this-host")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert tokens._cached() == (Path(folder, NAME) if folder else None)


def test_url_and_digest_are_those_of_the_installed_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another URL would send tiktoken to the network in spite of the file that we found."""
    import tiktoken_ext.openai_public as public

    seen: list[tuple[str, str]] = []
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda url, expected_hash: seen.append((url, expected_hash)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    public.o200k_base()
    assert seen == [(tokens._URL, tokens._SHA256)]


# What o200k_base says of these; the estimate may be high, and not much too low.
TRUE = {
    "python": ("def add(left: int, right: int) -> int:\n    return left + right\n", 19),
    "error": ("Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nValueError: bad\n", 27),
    "english": ("The quick brown fox jumps over the lazy dog, and nothing else happened.", 15),
    "hex": ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 43),
    "digits": ("31415926535897932384626433832795", 11),
    "chinese": ("错误:无法打开文件,因为它不存在。", 10),
    "emoji": ("🎉✅🚀", 5),
    "rule": ("=" * 80, 1),
    "spaces": (" " * 400, 4),
    "newlines": ("\n" * 160, 10),
}  # fmt: skip


@pytest.mark.parametrize(("text", "true"), TRUE.values(), ids=TRUE.keys())
def test_the_estimate_is_near_and_rather_high(text: str, true: int) -> None:
    assert true * 0.85 <= TokenCounter().count(text) <= true * 2 + 24


@pytest.mark.parametrize("unit", ["a", " ", "\n", "^", "漢", "🎉", "\u0301", "aB1_", "\ud800"], ids=repr)
def test_a_long_run_of_anything_is_no_trouble(unit: str) -> None:
    started = time.process_time()
    assert TokenCounter().count(unit * 300_000) > 0
    assert time.process_time() - started < 1


@pytest.mark.parametrize("text", ["", "a", "a b c\n" * 3000], ids=["empty", "one", "long"])
def test_fits_agrees_with_count(text: str) -> None:
    counter = TokenCounter()
    count = counter.count(text)
    assert counter.fits(text, count)
    assert not counter.fits(text, count - 1)
