"""What a terminal would show: raw output of a program -> plain text. Pure and linear in the size of its input."""

from __future__ import annotations

import re

# Where `ESC [ 9999 C` stops, on a line that is no longer than this. Without a ceiling a few bytes would make megabytes.
COLUMNS = 200

# The sequences that `_line` carries out: erase in line (K); move to a column (G), forward (C), back (D).
_CURSOR = r"\[\d{0,4}[KGCD]"
# All others. Strings (DCS, SOS, OSC, PM, APC) end with BEL or ESC \ on their own line, or else only their opening goes:
# `cat` of a binary must not swallow the rest of the output. No branch reads past the next ESC, so that a million
# openings cost no more than a million other bytes.
_SEQUENCE = re.compile(
    rf"\x1b(?!{_CURSOR})"
    r"(?:\[[0-?]*[ -/]*[@-~]?|[PX\]^_](?:[^\x07\x1b\n]*(?:\x07|\x1b\\))?|[ -/]{0,2}[0-~]?)"
)
_STEP = re.compile(rf"\r+|\x08+|\t+|\x1b{_CURSOR}|[^\r\x08\t\x1b]+")
_MOVES = re.compile(r"[\r\x08\x1b]")
_MORE = re.compile(r"[\t\x08\x1b]")
# A tab on such a line is "\t" and an ESC for each further column; `_tab` makes one tab of it again if it is whole.
_TAB = re.compile(r"\t\x1b*|\x1b+")

# C0 but tab and newline, DEL, C1, and the code points that are no characters: valid UTF-8, and yet many a parser
# (XML, some JSON) refuses them, and nobody sees them.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_VISIBLE = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"},
    **dict.fromkeys((*range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF), "\ufffd"),
}


def clean(data: bytes) -> str:
    r"""Text as a terminal would show it. What is not UTF-8 becomes U+FFFD, and `\r\n` a newline. A bare `\r` goes back
    to the start of its line, `\b` one column, and what follows overwrites (`abc\rX` is `Xbc`); `ESC [ K`, `G`, `C`
    and `D` erase and move within the line; every other escape sequence is removed, finished or not. The control
    characters that remain are written out (NUL as the four characters `\x00`); tab and newline stay.

    One code point is one column, also a wide or a combining one, and lines never wrap. The result is valid UTF-8, and
    cleans to itself. Linear in time; at most 8 times longer than `data`. Never raises.
    """
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    if _MOVES.search(text):
        text = "\n".join(_line(line) if _MOVES.search(line) else line for line in text.split("\n"))
    return text.translate(_VISIBLE) if _UNSEEN.search(text) else text


def _line(raw: str) -> str:
    """One line with its cursor movements carried out.

    Erasing is not done but remembered: reading the steps backwards, what was written before an erasure is clipped by
    it. Done forwards, a long line that is erased again and again would cost its length each time.
    """
    raw = raw.strip("\r\b")  # no effect at either end
    if not _MOVES.search(raw):
        return raw
    if not _MORE.search(raw):  # progress bars: each part over the earlier ones, which stick out if they were longer
        text = ""
        for part in reversed(raw.split("\r")):
            text += part[len(text) :]
        return text

    starts: list[int] = []  # two plain lists, for half a million pairs would keep the garbage collector busy
    steps: list[str] = []
    column = width = 0
    for step in _STEP.findall(raw):
        first = step[0]
        if first == "\r":
            column = 0
            continue
        if first == "\b":
            column = max(0, column - len(step))
            continue
        if first == "\x1b" and step[-1] != "K":
            count = max(1, int(step[2:-1] or 1))
            target = {"G": count - 1, "C": column + count, "D": max(0, column - count)}[step[-1]]
            column = min(target, max(column, width, COLUMNS))
            continue
        if first == "\t":
            blanks = 8 * len(step) - column % 8
            if column < width:  # a tab over text moves, and writes nothing
                column += blanks
                continue
            step = "\t".ljust(8 - column % 8, "\x1b") + "\t\x1b\x1b\x1b\x1b\x1b\x1b\x1b" * (len(step) - 1)
        starts.append(column)
        steps.append(step)
        if first != "\x1b":
            column += len(step)
            if column > width:
                width = column

    low, high = 0, width  # what was written earlier still shows in the columns low <= c < high
    cells: list[str] = []
    for i in range(len(steps) - 1, -1, -1):
        start, step = starts[i], steps[i]
        if step[0] == "\x1b":
            steps[i] = ""
            mode = int(step[2:-1] or 0)
            if mode == 0:
                high = min(high, start)
            elif mode == 1:
                low = max(low, start + 1)
            elif mode == 2:
                del starts[: i + 1], steps[: i + 1]
                break
        elif start < low or start + len(step) > high:
            steps[i] = step[max(0, low - start) : max(0, high - start)]
            starts[i] = max(low, start)
    for start, step in zip(starts, steps, strict=True):
        if step:
            if start > len(cells):
                cells.extend(" " * (start - len(cells)))
            cells[start : start + len(step)] = step
    text = "".join(cells)
    return _TAB.sub(_tab, text) if "\t" in text or "\x1b" in text else text


def _tab(match: re.Match[str]) -> str:
    whole = match[0][0] == "\t" and match.end() % 8 == 0
    return "\t" if whole else " " * len(match[0])
