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


def _find(messages, id):
    for message in messages:
        if message.id == id:
            return message
    return None


def _parent(messages, message):
    """The message replied to; None if there is none, or if following the parents leads back to the message."""
    first = _find(messages, message.parent)
    seen = []
    above = first
    while above is not None and above.id not in seen:
        if above.id == message.id:
            return None
        seen.append(above.id)
        above = _find(messages, above.parent)
    return first


def _children(messages, message):
    return [m for m in messages if _parent(messages, m) is message]


def _subtree(messages, message):
    found = [message]
    for current in found:
        found.extend(_children(messages, current))
    return found


def _ancestors(messages, message):
    found = []
    above = _parent(messages, message)
    while above is not None:
        found.append(above)
        above = _parent(messages, above)
    return found


def build_digest(messages: Iterable[Message]) -> list[Row]:
    kept = []
    for message in messages:
        if message.id == "":
            raise ValueError("a message without id")
        earlier = _find(kept, message.id)
        if earlier is None:
            kept.append(message)
        elif message.time > earlier.time:
            # A newer version: takes the place of the older one, but the thread position is fixed by the first.
            kept[kept.index(earlier)] = message._replace(parent=earlier.parent)

    rows = {}
    for message in kept:
        subtree = _subtree(kept, message)
        rows[message.id] = Row(
            id=message.id,
            depth=len(_ancestors(kept, message)),
            replies=len(_children(kept, message)),
            size=len(subtree),
            latest=max(m.time for m in subtree),
            root=(_ancestors(kept, message) or [message])[-1].id,
            voices=len({m.author for m in subtree}),
        )

    # Threads by latest activity, newest first; within a thread each message is followed by its replies, oldest first.
    result = []
    pending = [m for m in kept if _parent(kept, m) is None]
    pending.sort(key=lambda m: rows[m.id].latest, reverse=True)
    while pending:
        message = pending.pop(0)
        result.append(rows[message.id])
        replies = _children(kept, message)
        replies.sort(key=lambda m: (m.time, m.author))
        pending = replies + pending
    return result
