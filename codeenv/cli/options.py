"""Options that more than one command has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Dataset = Annotated[str, typer.Argument(help="A shipped set, one task of it (SET/ID), a directory, or a .jsonl file.")]
Sandbox = Annotated[str, typer.Option(help="A sandbox by name, or auto.")]
ScriptFile = Annotated[
    Path | None, typer.Option("--script", help="The messages of the policy `script`, JSON or JSONL.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
