"""Public sets by name: whose rows they are, and where these come from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from codeenv.sources.choice import Choice
from codeenv.sources.hub import read_hub, read_parquet
from codeenv.sources.mapped import mapping
from codeenv.sources.pool import JsonlRows, ListRows, Pool, RowPool, Rows
from codeenv.sources.rows import FIELD_LIMIT_MB, Hub, PublicSet, Row
from codeenv.sources.sets import public_sets
from codeenv.task import Task

NAME = re.compile(r"(?P<name>[^@:/]+)(@(?P<revision>[^:]+))?(:(?P<file>.+))?")
REPO = re.compile(r"hf:(?P<repo>[^:@]+)(:(?P<config>[^@]+))?(@(?P<revision>.+))?")
OURS = ("train", "eval")


@dataclass(frozen=True)
class Named:
    """A public set as a user named it, with a revision or a file of its rows."""

    chosen: PublicSet
    revision: str = ""
    file: str = ""


def public_set(dataset: str) -> Named | None:
    """What `NAME`, `NAME@REVISION` or `NAME:FILE` names; None when there is no set of that name."""
    parts = NAME.fullmatch(dataset)
    found = public_sets().get(parts["name"]) if parts else None
    return Named(found, parts["revision"] or "", parts["file"] or "") if parts and found else None


def catalogue() -> list[dict[str, str]]:
    """Every public set: its name, its title, where its rows come from, its splits as `ours: own`, its licence."""
    return [
        {
            "name": entry.name,
            "set": entry.title,
            "source": _source(entry),
            "splits": ", ".join(f"{ours}: {own}" for ours, own in sorted(entry.splits.items())),
            "licence": entry.licence,
        }
        for entry in sorted(public_sets().values(), key=lambda entry: entry.name)
    ]


def _source(entry: PublicSet) -> str:
    places = ["a package"] if entry.package else []
    places += [f"{entry.name}:DIRECTORY"] if entry.read else []
    if hub := entry.hub:
        config = f":{hub.config}" if hub.config else ""
        places.append(f"{hub.repo}{config}@{hub.revision[:7] or 'first load'}")
    return ", else ".join(places)


def splits_of(dataset: str) -> tuple[str, ...]:
    """Which of `train` and `eval` a public set has; none for anything else."""
    named = public_set(dataset)
    return () if named is None or named.file else tuple(name for name in OURS if name in named.chosen.splits)


def public_pool(named: Named, choice: Choice) -> Pool:
    """:raises FileNotFoundError: its rows are not to be had. :raises ValueError: there is no such split."""
    if choice.columns or choice.kind or choice.grader:
        raise ValueError(
            f"columns: {named.chosen.name} has a mapping of its own; columns, kind and grader are for others"
        )
    chosen = named.chosen
    if named.file and chosen.read is not None:
        _no_split(choice, named.file)
        rows = ListRows(list(chosen.read(Path(named.file).expanduser())))
        return _pool(choice, rows, chosen.to_task, chosen.field_limit_mb, by_content=True)
    rows = _file_rows(named.file, choice) if named.file else _rows(named, choice.split)
    return _pool(choice, rows, chosen.to_task, chosen.field_limit_mb)


def hub_pool(choice: Choice) -> Pool:
    """Rows of any repository, by a mapping.

    :raises FileNotFoundError: its rows are not to be had. :raises ValueError: the name, the mapping or the split is not
        valid.
    """
    parts = REPO.fullmatch(choice.dataset)
    if not parts:
        raise ValueError(f"dataset: {choice.dataset!r} must be hf:REPO[:CONFIG][@REVISION]")
    to_task = mapping(choice.columns, choice.kind, choice.grader)
    hub = Hub(parts["repo"], parts["revision"] or "", parts["config"])
    split = {"": "train", "eval": "test"}.get(choice.split, choice.split)
    return _pool(choice, read_hub(hub, split, choice.dataset), to_task)


def file_pool(choice: Choice, path: Path) -> Pool:
    """Rows of a file of any schema, by a mapping."""
    return _pool(choice, _file_rows(str(path), choice), mapping(choice.columns, choice.kind, choice.grader))


def _pool(
    choice: Choice,
    rows: Rows,
    to_task: Callable[[Row], Task],
    limit: float = FIELD_LIMIT_MB,
    *,
    by_content: bool = False,
) -> Pool:
    return RowPool(choice.dataset, rows, to_task, limit=choice.field_limit_mb or limit, by_content=by_content)


def _rows(named: Named, split: str) -> Rows:
    chosen = named.chosen
    default = chosen.splits.get("eval") or chosen.splits["train"]
    if split in OURS and split not in chosen.splits:
        has = ", ".join(f"{ours} ({own})" for ours, own in chosen.splits.items())
        raise ValueError(f"split: {chosen.name} has no {split!r}; it has {has}")
    own = chosen.splits.get(split, split) if split else default
    packaged = chosen.package() if chosen.package and own == default and not named.revision else None
    if packaged is not None:
        return ListRows(list(packaged))
    if chosen.read is not None:
        raise FileNotFoundError(f"{chosen.name}: say where it is: {chosen.name}:DIRECTORY")
    if chosen.hub is None:
        what = f"its split {own!r}" if own != default else "the package that brings it, which is not installed"
        raise FileNotFoundError(f"{chosen.name}: there is no way to {what}; docs/datasets.md says where it comes from")
    hub = replace(chosen.hub, revision=named.revision) if named.revision else chosen.hub
    return read_hub(hub, own, chosen.name)


def _file_rows(file: str, choice: Choice) -> Rows:
    _no_split(choice, file)
    path = Path(file).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file of rows")
    return read_parquet(path) if path.suffix == ".parquet" else JsonlRows(path)


def _no_split(choice: Choice, file: str) -> None:
    if choice.split:
        raise ValueError(f"split: {file} is a file, which has no splits")
