"""The page around the content, and what keeps untrusted content from being more than text.

Everything is escaped (`codeenv.html`), and the page says to the browser that nothing else may be: its
content-security policy allows our own script and style by their hashes, and no request, no form, no frame, no
inline handler and no `style=`; the script may not turn text into elements (`require-trusted-types-for`).
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from codeenv.html import environment, stylesheet
from codeenv.html.text import compact
from codeenv.report.figures import outcome_of, parts, split

HERE = Path(__file__).parent
_TEMPLATES = environment(HERE / "templates")
_TEMPLATES.filters.update(split=split, parts=parts, outcome_of=outcome_of)  # pyright: ignore[reportUnknownMemberType]


def piece(name: str, /, **values: Any) -> str:
    """A part of the page."""
    return _TEMPLATES.get_template(f"{name}.html.j2").render(**values)


def page(**values: Any) -> str:
    """The whole file."""
    style = stylesheet() + "\n" + compact(_own("report.css"))
    plain = compact(_own("without_script.css"))
    script = _own("report.js")
    first = 'document.documentElement.classList.add("js")'
    rules = [
        "default-src 'none'",
        f"style-src {_hash(style)} {_hash(plain)}",
        f"script-src {_hash(first)} {_hash(script)}",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    given = {"style": style, "plain": plain, "first": first, "script": script, **values}
    return piece("page", policy="; ".join(rules), **given)


def _own(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
