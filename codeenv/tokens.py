"""How long a text is to a model: tokens as o200k_base counts them, or an estimate where its table is not at hand."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

TABLE = "o200k_base"
# As in `tiktoken_ext.openai_public`; the cached file's name is the URL's SHA-1.
_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

# tiktoken's time and stack can grow faster than the text on a long run of one kind of character: it never sees more.
_PIECE = 4096
# Each match counts as one token. A word of more than 5 letters often is one as well: that is the margin.
_ESTIMATE = re.compile(
    r" ?[A-Z]?[a-z]{1,5}|[A-Z]{1,2}|[0-9]{1,3}| ?([!-/:-@\[-`{-~])\1{3,15}| ?[!-/:-@\[-`{-~]{1,2}|\s{1,16}"
    r"|[\u00a0-\u06ff]{1,2}|[^\x00-\u06ff]|[\x00-\x1f\x7f-\x9f]"
)
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")  # emoji and the like: three tokens

_log = logging.getLogger(__name__)
_lock = threading.Lock()


class TokenCounter:
    """Counts tokens, by o200k_base's table or by an estimate. Which one is settled when a process counts for the first
    time, and never changes in it. That may take 0.5 s (reading the table): ask for `exact` before episodes start.

    The table is used if it lies in tiktoken's cache: `TIKTOKEN_CACHE_DIR`, else `DATA_GYM_CACHE_DIR`, else
    `data-gym-cache` in the temporary directory. Nothing is downloaded from here, as tiktoken's download has no timeout:
    without the table the estimate serves, and one warning says how to fetch it. Never fails, never waits for a network.

    The estimate over the true count: source code 1.27 (150 files of Python, each 1.0 to 1.6), documentation 1.4, JSON
    1.2 (worst file 0.83), listings and logs 1.1, hexadecimal and numbers 1.0, Chinese and Japanese 1.5, other languages
    up to 2.9. It is well below 1 on noise alone: base64 0.85, random letters 0.39, random rare symbols 0.35.
    """

    @property
    def exact(self) -> bool:
        """Whether the table is in use."""
        return _encoding() is not None

    def count(self, text: str) -> int:
        """Tokens of `text`; special tokens in it are plain text. Linear: some 50 to 150 ms a MB. Counted in pieces of
        4096 characters, each of which may add a token."""
        return sum(self._count(text[i : i + _PIECE]) for i in range(0, len(text), _PIECE))

    def fits(self, text: str, tokens: int) -> bool:
        """`count(text) <= tokens`, without counting any further than that."""
        for i in range(0, len(text), _PIECE):
            if tokens < 0:
                break
            tokens -= self._count(text[i : i + _PIECE])
        return tokens >= 0

    def _count(self, piece: str) -> int:
        encoding = _encoding()
        if encoding is not None:
            return len(encoding.encode(piece, disallowed_special=()))
        count = len(_ESTIMATE.findall(piece))
        return count if piece.isascii() else count + 2 * len(_ASTRAL.findall(piece))


def _encoding() -> Encoding | None:
    with _lock:  # the first callers may come at once, from threads
        return _load()


@cache
def _load() -> Encoding | None:
    path = _cached()
    reason = f"tiktoken's {TABLE} table is not in its cache ({path or 'turned off by the environment'})"
    try:
        if path is not None and path.is_file():
            # Checked here: a damaged file is one that tiktoken would remove and download again.
            if hashlib.sha256(path.read_bytes()).hexdigest() == _SHA256:
                import tiktoken

                return tiktoken.get_encoding(TABLE)
            reason = f"{path} is not tiktoken's {TABLE} table"
    except Exception as error:
        reason = f"tiktoken's {TABLE} table cannot be used: {error!r}"
    fetch = f"python -c \"import tiktoken; tiktoken.get_encoding('{TABLE}')\""
    _log.warning("Token counts are estimates, mostly 10 to 40 %% high: %s. To count exactly: %s", reason, fetch)
    return None


def _cached() -> Path | None:
    """Where `tiktoken.load.read_file_cached` would look for the table. None: caching is turned off (an empty name)."""
    folder = os.path.join(tempfile.gettempdir(), "data-gym-cache")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", folder))
    return Path(folder, hashlib.sha1(_URL.encode(), usedforsecurity=False).hexdigest()) if folder else None
