"""Options that more than one command has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

Dataset = Annotated[str, typer.Argument(help="A shipped set, one task of it (SET/ID), a directory, or a .jsonl file.")]
Sandbox = Annotated[str, typer.Option(help="A sandbox by name, or auto.")]
SandboxSettings = Annotated[
    list[str] | None,
    typer.Option("--sandbox-setting", metavar="NAME=VALUE", help="One of its own settings; may be repeated."),
]
Image = Annotated[
    str | None, typer.Option(help="The boxes' image, or id: and what `codeenv image build` said; a task's own counts.")
]
ScriptFile = Annotated[
    Path | None, typer.Option("--script", help="The messages of the policy `script`, JSON or JSONL.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def settings_of(pairs: list[str] | None) -> dict[str, Any]:
    """Settings of a sandbox as a command line has them: values are JSON, or text where they are not.

    :raises ValueError: one is not NAME=VALUE, or is a secret.
    """
    from codeenv.sandbox import public_settings

    found: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise ValueError(f"--sandbox-setting: must be NAME=VALUE, not {pair!r}")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return public_settings(found)
