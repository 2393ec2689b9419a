"""HTML of what episodes are made of: what notebooks show of an object, and what the report is put together from.

    fragment("verdict", verdict=verdict)

Fragments know plain attributes and mappings alone. All that they are given is untrusted text: it is escaped, and what
would be invisible or reorder a line is written out (`visible`). They hold no script, no `style=`, no link that comes
from content; what folds is `<details>`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from codeenv.html import ask, diff, text

__all__ = ["FRAGMENTS", "environment", "fragment", "styled", "stylesheet"]

HERE = Path(__file__).parent
FRAGMENTS = (
    "verdict",
    "observation",
    "call",
    "diff",
    "files",
    "turn",
    "recording",
    "timeline",
    "episodes",
    "run",
    "verdicts",
    "task",
)
"""Each is a file in `templates`, whose first line names the values that it takes."""


@cache
def environment(*folders: Path) -> Environment:
    """Templates of `folders`, then ours, with the filters of this package."""
    made = Environment(
        loader=FileSystemLoader([*folders, HERE / "templates"]),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(text.FILTERS | diff.FILTERS | ask.FILTERS)  # pyright: ignore[reportUnknownMemberType]
    return made


def fragment(name: str, /, **values: Any) -> str:
    """One of `FRAGMENTS` without its style, for a page that has it.

    :raises ValueError: there is no such fragment. :raises jinja2.UndefinedError: a value is missing.
    """
    if name not in FRAGMENTS:
        raise ValueError(f"no fragment {name!r}; there are {', '.join(FRAGMENTS)}")
    return environment().get_template(f"{name}.html.j2").render(**values)


def styled(name: str, /, **values: Any) -> str:
    """A fragment that stands by itself, its style in it: what `_repr_html_` gives."""
    return f'<div class="codeenv"><style>{stylesheet()}</style>\n{fragment(name, **values)}</div>'


@cache
def stylesheet() -> str:
    """Everything in it is below the class `codeenv`."""
    return text.compact((HERE / "fragments.css").read_text(encoding="utf-8"))
