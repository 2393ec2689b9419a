"""The environment's rows: what verifiers reads of tasks."""

# `datasets` carries few types: what comes from it is Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from datasets import Dataset, concatenate_datasets

CHUNK = 1000


def table(rows: Iterable[dict[str, Any]]) -> Dataset:
    """The rows as an Arrow table in memory, a thousand at a time as Python objects. There must be one at least."""
    chunks: list[Dataset] = []
    waiting: list[dict[str, Any]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == CHUNK:
            chunks.append(Dataset.from_list(waiting))
            waiting = []
    if waiting:
        chunks.append(Dataset.from_list(waiting))
    return concatenate_datasets(chunks)
