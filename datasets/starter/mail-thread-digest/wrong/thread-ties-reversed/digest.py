"""Digest of a mailing list archive."""

from collections.abc import Iterable
from typing import NamedTuple


class Message(NamedTuple):
    id: str
    parent: str | None
    author: str
    time: int


class Row(NamedTuple):
    id: str
    depth: int
    replies: int
    size: int
    latest: int
    root: str
    voices: int


def _latest_versions(messages: Iterable[Message]) -> dict[str, Message]:
    """One message for each id, in order of first appearance."""
    kept: dict[str, Message] = {}
    for message in messages:
        if message.id == "":
            raise ValueError("a message without id")
        earlier = kept.get(message.id)
        if earlier is None:
            kept[message.id] = message
        elif message.time > earlier.time:
            # A newer version: takes the place of the older one, but the thread position is fixed by the first.
            kept[message.id] = message._replace(parent=earlier.parent)
    return kept


def _on_rings(kept: dict[str, Message]) -> set[str]:
    """The ids of messages that are their own ancestors."""
    rings: set[str] = set()
    walk_of: dict[str, int] = {}
    for walk, start in enumerate(kept):
        path = []
        id = start
        while id in kept and id not in walk_of:
            walk_of[id] = walk
            path.append(id)
            id = kept[id].parent
        if walk_of.get(id) == walk and path:
            rings.update(path[path.index(id) :])
    return rings


def build_digest(messages: Iterable[Message]) -> list[Row]:
    kept = _latest_versions(messages)
    rings = _on_rings(kept)

    roots: list[Message] = []
    children: dict[str, list[Message]] = {id: [] for id in kept}
    for message in kept.values():
        if message.parent in kept and message.id not in rings:
            children[message.parent].append(message)
        else:
            roots.append(message)

    # From the top down, so that each message comes after its parent.
    depth: dict[str, int] = {}
    root: dict[str, str] = {}
    top_down = list(roots)
    for message in roots:
        depth[message.id], root[message.id] = 0, message.id
    for message in top_down:
        for child in children[message.id]:
            depth[child.id], root[child.id] = depth[message.id] + 1, root[message.id]
            top_down.append(child)

    # From the bottom up. The set of authors is a bit mask.
    bits: dict[str, int] = {}
    size = dict.fromkeys(kept, 1)
    latest = {message.id: message.time for message in kept.values()}
    voices = {m.id: 1 << bits.setdefault(m.author, len(bits)) for m in kept.values()}
    for message in reversed(top_down):
        for child in children[message.id]:
            size[message.id] += size[child.id]
            latest[message.id] = max(latest[message.id], latest[child.id])
            voices[message.id] |= voices[child.id]

    # Threads by latest activity, newest first; within a thread each message is followed by its replies, oldest first.
    result = []
    pending = sorted(roots, key=lambda m: latest[m.id])  # the next one is at the end
    while pending:
        id = pending.pop().id
        replies = children[id]
        result.append(Row(id, depth[id], len(replies), size[id], latest[id], root[id], voices[id].bit_count()))
        pending.extend(reversed(sorted(replies, key=lambda m: (m.time, m.author))))
    return result
