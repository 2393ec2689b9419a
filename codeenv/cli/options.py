"""Options that more than one command has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, cast

import typer

Dataset = Annotated[
    str,
    typer.Argument(
        help="A shipped set, one task of it (SET/ID), a directory, a .jsonl file, a public set (NAME[:FILE])."
    ),
]
Split = Annotated[str, typer.Option(help="train, eval, or one of the set's own names.")]
Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="KEY=VALUE", help="Metadata: KEY=A,B or KEY>=VALUE and so on; may be repeated."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Tasks at most.")]
Seed = Annotated[int | None, typer.Option(help="Shuffles first, so that --limit takes a sample.")]
Sandbox = Annotated[str, typer.Option(help="A sandbox by name, or auto.")]
SandboxSettings = Annotated[
    list[str] | None,
    typer.Option("--sandbox-setting", metavar="NAME=VALUE", help="One of its own settings; may be repeated."),
]
Image = Annotated[
    str | None, typer.Option(help="The boxes' image, or id: and what `codeenv image build` said; a task's own counts.")
]
ScriptFile = Annotated[
    Path | None,
    typer.Option("--script", help="For the policy `script`: messages in JSON or JSONL, or recordings."),
]
Recorded = Annotated[Path, typer.Argument(help="A recording, or a folder of them.", show_default=False)]
FromDataset = Annotated[
    str | None, typer.Option("--dataset", help="Where the tasks come from, if not from where the recordings say.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


CONDITION = re.compile(r"([^<>=!]+)(<=|>=|!=|==|=|<|>)(.*)", re.DOTALL)


def choice_of(split: str, filters: list[str] | None, limit: int | None, seed: int | None) -> dict[str, Any]:
    """Those that were given, as `codeenv.sources.open_tasks` and `load_environment` take them.

    :raises ValueError: a filter is not KEY=VALUE.
    """
    wanted: dict[str, dict[str, Any]] = {}
    for text in filters or ():
        parts = CONDITION.fullmatch(text)
        if not parts:
            raise ValueError(f"--filter: must be KEY=VALUE, KEY=A,B, KEY>=VALUE or the like, not {text!r}")
        key, sign, value = parts[1].strip(), parts[2], parts[3].strip()
        if sign == "=":
            condition = {"in": [_value(item.strip()) for item in value.split(",")]}
        else:
            condition = {sign: _value(value)}
        wanted.setdefault(key, {}).update(condition)
    given = {"split": split or None, "filter": wanted or None, "limit": limit, "seed": seed}
    return {name: value for name, value in given.items() if value is not None}


def _value(text: str) -> Any:
    """JSON, or text where it is not."""
    try:
        return json.loads(text)
    except ValueError:
        return text


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
        found[name] = _value(text)
    return public_settings(found)


def json_object(option: str, text: str) -> dict[str, Any]:
    """:raises ValueError: it is none."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{option}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f'{option}: must be a JSON object, such as {{"max_turns": 10}}')
    return cast(dict[str, Any], value)
