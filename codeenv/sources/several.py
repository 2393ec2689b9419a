"""Several datasets as one: interleaved by weight, ids made unique."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, cast

from codeenv.sources.rows import identifier
from codeenv.sources.tasks import Found


@dataclass
class Part:
    """One dataset among several: its tasks as they come, and what part of all it is to be."""

    name: str
    weight: float
    found: Iterator[Found]
    given: int = 0


def entries_of(dataset: object) -> list[object] | None:
    """A `dataset` argument that names several: a list, or names with their weights; None when it names one.

    :raises ValueError: it names none.
    """
    if isinstance(dataset, Mapping) and "dataset" not in dataset:
        weights = cast(Mapping[str, Any], dataset)
        several: list[object] = [{"dataset": name, "weight": weight} for name, weight in weights.items()]
    elif isinstance(dataset, Sequence) and not isinstance(dataset, str):
        several = list(cast(Sequence[object], dataset))
    else:
        return None
    if not several:
        raise ValueError("dataset: no dataset is named")
    return several


def interleaved(parts: Sequence[Part]) -> Iterator[Found]:
    """The next task is always of the part that is furthest behind its weight, so that every beginning has the shares
    asked for. It ends when a part has no more: no task comes twice, and the shares stay true."""
    whole = sum(part.weight for part in parts)
    for given in count():
        part = max(parts, key=lambda part: part.weight / whole * (given + 1) - part.given)
        found = next(part.found, None)
        if found is None:
            return
        part.given += 1
        yield found


def one_after_another(parts: Sequence[Part]) -> Iterator[Found]:
    for part in parts:
        yield from part.found


def unique(parts: Sequence[Part], merge: Callable[[Sequence[Part]], Iterable[Found]]) -> Iterator[Found]:
    """An id that an earlier dataset's task has gets its set's name in front."""
    taken: set[str] = set()

    def named(part: Part) -> Iterator[Found]:
        for entry, task in part.found:
            name = entry.id
            while name in taken:
                name = f"{identifier(part.name)}/{name}"
            taken.add(name)
            if name != entry.id:
                entry, task = replace(entry, id=name), task.model_copy(update={"id": name})
            yield entry, task

    yield from merge([replace(part, found=named(part)) for part in parts])
