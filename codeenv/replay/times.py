"""What of an output is a matter of when and where it was run, and of nothing else."""

from __future__ import annotations

import re

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAY = "(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? +)?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
_UNIT = r"(?:seconds?|secs?|s|ms|us|µs|ns|milliseconds?)\b"

_KINDS = {
    "date": (
        rf"\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_CLOCK})?{_ZONE}"
        rf"|\b{_DAY}{_MONTH} +\d{{1,2}}(?: +{_CLOCK})?{_ZONE}(?: +\d{{4}}\b)?"
        rf"|\b{_DAY}\d{{1,2}} {_MONTH} \d{{4}}(?: {_CLOCK})?{_ZONE}"
    ),
    # Without seconds it may as well be a score, or data: those stand only behind a date.
    "clock": r"(?<![\w:.])\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?![\w:])",
    "duration": rf"(?<![\w.])\d+\.\d+ ?{_UNIT}|(?<![\w.])\d+ ?(?:ms|us|µs|ns)\b|\b\d+m\d+(?:[.,]\d+)?s\b"
    r"|(?<=\[no end within )\d+ s\b",
    "pid": r"(?<=\b[Pp][Ii][Dd])[ =:]{0,2}\d+\b|(?m:^\[\d+\] \d+$)",
    "id": (
        r"\b0x[0-9a-fA-F]{6,16}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
        r"|(?<=/tmp/tmp)[a-z0-9_]{8}\b"
    ),
}
_TIMES = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
_PADDING = re.compile(r"([ =_-])\1+")


def without_times(text: str) -> str:
    """`text` with a word for each date, time of day with seconds, duration with a fraction or in milliseconds, process
    number that says it is one, address, UUID and name of a temporary file; where there is one, the padding of its line
    counts for nothing. Digests stay: another one is another content."""
    if not _TIMES.search(text):
        return text
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    found, count = _TIMES.subn(lambda match: f"<{match.lastgroup}>", line)
    return _PADDING.sub(r"\1", found) if count else line
