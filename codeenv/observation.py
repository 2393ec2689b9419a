"""Bytes from a sandbox -> text that a model sees: cleaned as a terminal would, then cut in the middle to a budget.

Pure and deterministic: within a process the same bytes always give the same text.
"""

from __future__ import annotations

import re
import unicodedata

from codeenv.terminal import clean
from codeenv.tokens import TokenCounter

__all__ = ["MIN_TOKENS", "TokenCounter", "clean", "cut", "render"]

MIN_TOKENS = 32
"""The smallest budget: room for the marker and a little of both ends."""

_JOINER = "\u200d"
_SPLIT_AT_END = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
_SPLIT_AT_START = re.compile(rb"[\x80-\xbf]{1,3}")


def cut(text: str, tokens: int, *, counter: TokenCounter, where: str = "", omitted_bytes: int = 0) -> str:
    """`text` as it is if it has at most `tokens` tokens. Else its beginning and its end, and between them a line that
    says how much is missing and that the full output is in `where`; that line included, it has at most `tokens`.

    Cuts at the end of a line if one is near, and not inside a character of several code points. `omitted_bytes`, which
    `text` lacks already, are added to what a cut states, in bytes then instead of characters. A budget too small for
    `where` leaves it out. :raises ValueError: `tokens` is under 32.
    """
    _check(tokens)
    if counter.fits(text, tokens):
        return text
    middle = _line_end(text, len(text) // 2)
    return _shorten(text[:middle], text[middle:], tokens, counter, where, omitted_bytes)


def render(stdout_head_and_tail: bytes, *, total: int, tokens: int, counter: TokenCounter, saved_to: str = "") -> str:
    """What a model sees of a command's output. If it was `total` bytes, more than the sandbox kept, then it kept
    the first `len - len // 2` and the last `len // 2` bytes (`ExecResult`): each part is cleaned by itself, a line
    between them says how many bytes are missing in all, and the whole fits in `tokens`. Else `cut(clean(...))`.

    `saved_to` names the file in the box that has everything. :raises ValueError: `tokens` is under 32.
    """
    _check(tokens)
    data = stdout_head_and_tail
    if total <= len(data):
        return cut(clean(data), tokens, counter=counter, where=saved_to)
    half = len(data) - len(data) // 2
    head, tail = data[:half], data[half:]
    # What is left of a character that lay across the gap would be shown as U+FFFD: it goes with the rest of the gap.
    if split := _SPLIT_AT_END.search(head, max(0, half - 3)):
        head = head[: split.start()]
    if split := _SPLIT_AT_START.match(tail):
        tail = tail[split.end() :]
    return _shorten(clean(head), clean(tail), tokens, counter, saved_to, total - len(head) - len(tail))


def _check(tokens: int) -> None:
    if tokens < MIN_TOKENS:
        raise ValueError(f"{tokens} tokens are too few for an observation: at least {MIN_TOKENS}")


def _shorten(head: str, tail: str, tokens: int, counter: TokenCounter, where: str, lost: int) -> str:
    """As much of `head`'s start and of `tail`'s end as fits, around the marker. `lost` bytes lay between them."""
    # A path can be anything that a policy came up with: it may neither end the line nor be invalid UTF-8.
    where = clean(where.encode("utf-8", "replace")).replace("\n", "\\n")
    size = len(head) + len(tail)
    most = lost + 4 * size if lost else 0
    for detail in (2, 1, 0):  # the fullest marker that leaves half of the budget to the text
        reserve = counter.count("\n" + _marker(detail, size, size, most, where) + "\n")
        if reserve <= tokens // 2:
            break
    room = tokens - reserve
    while True:
        # Half for each side, and what the other one leaves.
        end, used = _reach(tail, room - room // 2, counter, back=True)
        stop, used = _reach(head, room - used, counter)
        if stop == len(head):
            end, used = _reach(tail, room - used, counter, back=True)
        first = head if stop == len(head) else head[: _line_end(head, stop)]
        last = tail if end == len(tail) else tail[_line_start(tail, len(tail) - end) :]

        kept = len(first) + len(last)
        missing = lost + _bytes(head) - _bytes(first) + _bytes(tail) - _bytes(last) if lost else 0
        # To count what is left out could cost more than all the rest: it is taken to be like what is kept.
        about = (size - kept) * max(room, 1) // max(kept, 1)
        marker = _marker(detail, size - kept, about, missing, where)
        line = "\n" if first and not first.endswith("\n") else ""
        result = f"{first}{line}{marker}\n{last}" if last else f"{first}{line}{marker}"
        over = counter.count(result) - tokens
        if over <= 0 or not kept:
            return result
        # Pieces counted alone and together differ by a few tokens. At most half is given up, at least one for an end.
        room -= max(1, min(over + room // 64, room // 2))


def _marker(detail: int, characters: int, about: int, missing: int, where: str) -> str:
    amount = f"{missing:,} bytes" if missing else f"{characters:,} characters"
    if detail == 2 and not missing:
        amount += f" (about {int(float(f'{about:.1e}')):,} tokens)"
    if detail == 0 or not where:
        return f"[... {amount} omitted ...]"
    return (
        f"[... {amount} omitted; the full output is in {where} ...]"
        if detail == 2
        else f"[... {amount} omitted, see {where} ...]"
    )


def _reach(text: str, tokens: int, counter: TokenCounter, *, back: bool = False) -> tuple[int, int]:
    """How many characters from the start (`back`: from the end) take at most `tokens`, and how many they take."""
    reached = used = 0
    step = 1024
    while step and reached < len(text):
        stop = len(text) - reached
        piece = text[max(0, stop - step) : stop] if back else text[reached : reached + step]
        count = counter.count(piece)
        if used + count <= tokens:
            reached, used = reached + len(piece), used + count
        else:
            step //= 2
    return reached, used


def _line_end(text: str, stop: int) -> int:
    """`stop`, or less: after the last newline in the last quarter before it, else not inside a character."""
    return text.rfind("\n", stop - stop // 4, stop) + 1 or _between(text, stop, -1)


def _line_start(text: str, start: int) -> int:
    """`start`, or more: after the first newline in the quarter behind it, else not inside a character."""
    return text.find("\n", max(0, start - 1), start + (len(text) - start) // 4) + 1 or _between(text, start, 1)


def _between(text: str, at: int, step: int) -> int:
    """The nearest place in the direction of `step` that is between two characters, within 32 code points."""
    for place in range(at, at + 32 * step, step):
        if not 0 < place < len(text) or not _joined(text[place - 1], text[place]):
            return place
    return at


def _joined(left: str, right: str) -> bool:
    """Whether two code points belong to one character: marks, joined or coloured emoji, flags. Most of UAX 29."""
    if right < "\u0300":
        return left == _JOINER
    if "\U0001f1e6" <= right <= "\U0001f1ff":
        return "\U0001f1e6" <= left <= "\U0001f1ff"
    modifier = right == _JOINER or "\U0001f3fb" <= right <= "\U0001f3ff" or "\U000e0020" <= right <= "\U000e007f"
    return left == _JOINER or modifier or unicodedata.category(right)[0] == "M"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
