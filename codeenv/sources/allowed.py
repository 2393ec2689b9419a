"""Which tasks of a dataset may be used: ids, or a report of `codeenv validate`, of which the sound ones count."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from codeenv.sources.tasks import Account, Entry, Found, made

VERSION = 1
NAMED = 20  # ids that an error lists


def read_report(path: str, dataset: str) -> frozenset[str]:
    """The sound tasks of a report: a JSON object with `codeenv_report` (1), `dataset`, and `tasks`, each with `task`
    (its id) and `sound`.

    :raises FileNotFoundError: there is no such file. :raises ValueError: it is no report, is of another dataset, or has
        no sound task.
    """
    file = Path(path).expanduser()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"tasks: {path}: no such report; ids are given as a list") from None
    try:
        plain: dict[str, Any] = json.loads(text)
        version, of, rows = plain["codeenv_report"], plain["dataset"], cast(list[dict[str, Any]], plain["tasks"])
        sound = frozenset(str(row["task"]) for row in rows if row["sound"] is True)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"tasks: {path}: not a report of `codeenv validate`: {type(error).__name__}: {error}"
        ) from error
    if version != VERSION:
        raise ValueError(f"tasks: {path}: a report of version {version!r}; this codeenv reads {VERSION}")
    if of != dataset and Path(str(of)).resolve() != Path(dataset).resolve():
        raise ValueError(f"tasks: {path}: is a report of {of!r}, not of {dataset!r}")
    if not sound:
        raise ValueError(f"tasks: {path}: none of its {len(rows)} tasks is sound")
    return sound


def sound_only(found: Iterable[Found], sound: frozenset[str], account: Account) -> Iterator[Found]:
    for entry, task in found:
        if entry.id in sound:
            yield entry, task
        else:
            account.left_out["not sound by the report"] += 1


def named_only(found: Iterable[Found], names: Sequence[str]) -> Iterator[Found]:
    """Those with these ids, in this order. :raises ValueError: there is no such task, or none is named; the message
    lists some of those that there are."""
    wanted = dict.fromkeys(names)
    chosen: dict[str, Entry] = {}
    there: list[str] = []
    for entry, _ in found:
        there.append(entry.id)
        if entry.id in wanted:
            chosen[entry.id] = entry
        if wanted and len(chosen) == len(wanted):
            break
    missing = [name for name in wanted if name not in chosen]
    if missing or not names:
        listed = ", ".join(there[:NAMED]) + (f" and {len(there) - NAMED} more" if len(there) > NAMED else "")
        raise ValueError(f"tasks: no such task: {', '.join(missing) or 'none named'}; there are: {listed}")
    yield from ((chosen[name], made(chosen[name])) for name in names)
