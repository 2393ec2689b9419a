"""Text from models, programs and file names as HTML: escaped, and nothing in it that cannot be seen."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from markupsafe import Markup, escape

_JOINERS = "\u200c\u200d"  # of emoji and of scripts that need them

_ODD = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but for tab and newline
    "\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\uffff\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]"
)  # fmt: skip
"""What has no width, has no character, or changes the direction of what follows."""

_CUT = re.compile(r"^\[\.\.\. .{1,400} omitted.{0,400} \.\.\.\]$", re.MULTILINE)
"""The line that `codeenv.observation.cut` puts where it cuts."""


def visible(value: Any) -> Markup:
    """Escaped; what cannot be seen, or would reorder the line, is its code in `<b class=odd>`. A lone surrogate is
    such a code too, so that the result is valid UTF-8."""
    return Markup(_ODD.sub(_written, str(escape(str(value)))))


def output(value: Any) -> Markup:
    """As `visible`, with the lines marked that say what was cut."""
    return Markup(_CUT.sub(lambda match: f'<mark class="cut">{match[0]}</mark>', str(visible(value))))


def was_cut(value: str) -> bool:
    return _CUT.search(value) is not None


def _written(match: re.Match[str]) -> str:
    code = ord(match[0])
    name = f"\\x{code:02x}" if code < 0x100 else f"U+{code:04X}"
    title = unicodedata.name(match[0], "")
    return f'<b class="odd" title="{title}">{name}</b>' if title else f'<b class="odd">{name}</b>'


def seconds(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    if 0 < value < 0.001:
        return "<1 ms"
    if value < 0.0995:
        return f"{value * 1000:.0f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    minutes, left = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} m" if hours else f"{minutes} m {left:02} s"


def size(value: int) -> str:
    """Bytes."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value} B"


def number(value: float) -> str:
    """Short: three digits and a unit from 10,000 on."""
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if value >= (factor if unit == "M" else 10 * factor):
            digits = value / factor
            return f"{digits:.0f}{unit}" if digits >= 100 else f"{digits:.1f}".removesuffix(".0") + unit
    return f"{value:,.0f}"


def reward(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def mode(value: int) -> str:
    return f"{value & 0o7777:o}"


def moment(value: str) -> str:
    """A time in ISO 8601, for people."""
    return value[:19].replace("T", " ") + (" UTC" if value.endswith("+00:00") else value[19:])


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


FILTERS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (visible, output, was_cut, seconds, size, number, reward, mode, moment, plural)
}


def compact(css: str) -> str:
    """Without comments and indentation: a notebook has it in each of its outputs."""
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)).strip()
