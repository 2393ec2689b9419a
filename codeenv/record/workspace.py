"""What a turn changed: the workspace after it beside the workspace before it."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from codeenv.grading.workspace import ASIDE, aside, judged_workspace, workspace_of
from codeenv.record.schema import Change, Data, FileLeft, Left
from codeenv.sandbox.api import ExportTooLarge, MiB, Sandbox, SandboxError
from codeenv.sandbox.archive import Archive, ArchiveLimits, Entry, clean_path, link_stays_inside
from codeenv.task import Task

KEPT_FILE = MiB  # bytes of one file that is looked into; of a larger one the size is what is seen
KEPT_BYTES = 4 * MiB  # of all those whose text is kept for the next diff
FOLLOWED = ArchiveLimits(max_bytes=8 * MiB, max_entries=4000, max_file_bytes=KEPT_FILE, leave_out=ASIDE)
"""What is followed, dot-files and caches left out. A workspace with more is not."""
DIFF_LINES = 5000  # of the two sides of a diff together, between what they have in common
DIFF_SIZE = 64 * 1024  # characters of one diff
LEFT_BYTES = 16 * MiB  # of the files that are recorded at the end

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Seen:
    """A file or link as it was. `text` (of a link, its target) is None where it is not kept; `digest` is empty, and
    `mode` 0, where it was too large to be looked into."""

    mode: int
    size: int
    digest: str
    link: bool = False
    text: bytes | None = None


@dataclass(frozen=True)
class Tree:
    """The files and links of a workspace but for dot-files and caches, as they were after a turn."""

    seen: Mapping[str, Seen] = field(default_factory=dict[str, Seen])
    note: str = ""
    """Why it is not whole."""

    @classmethod
    def of(cls, entries: Archive, before: Tree | None = None) -> Tree:
        known: Mapping[str, Seen] = before.seen if before else {}
        seen: dict[str, Seen] = {path: Seen(0, size, "") for path, size in entries.large.items()}
        left = KEPT_BYTES
        for entry in entries:
            if entry.kind == "directory":
                continue
            now = _seen(entry, known.get(entry.path))
            if now.text is not None:
                left -= now.size
                if left < 0:
                    now = Seen(now.mode, now.size, now.digest, now.link)
            seen[entry.path] = now
        return cls(seen)


def start_of(task: Task) -> Tree:
    """The workspace before the first turn."""
    limits, start = _followed(task), workspace_of(task)
    large = {entry.path: entry.size for entry in start if entry.size > KEPT_FILE}
    aside_ones = {path for path in start.entries if limits.leave_out and aside(path)}
    kept = start.without(aside_ones | large.keys())
    return Tree.of(Archive(kept.entries, large={path: size for path, size in large.items() if path not in aside_ones}))


def _followed(task: Task) -> ArchiveLimits:
    """Dot-files are looked at where one is part of the work (see `judged_workspace`)."""
    return replace(FOLLOWED, leave_out=()) if any(map(aside, task.solution or ())) else FOLLOWED


def _seen(entry: Entry, before: Seen | None) -> Seen:
    if before and before.text == entry.data and before.mode == entry.mode and before.link == (entry.kind == "link"):
        return before  # which is most of them, at most turns
    digest = hashlib.sha256(entry.data).hexdigest()
    return Seen(entry.mode, entry.size, digest, entry.kind == "link", entry.data)


async def look(sandbox: Sandbox, task: Task, before: Tree) -> Tree:
    """The workspace as it is. Never raises what is the box's or the policy's doing: `note` then says what was in the
    way, and the tree is the one before."""
    try:
        return Tree.of(await sandbox.export(limits=_followed(task)), before)
    except ExportTooLarge as error:
        return Tree(before.seen, f"the workspace was not followed: {error}")
    except (SandboxError, OSError) as error:
        return Tree(before.seen, f"the workspace was not seen: {error}")


def changes(before: Tree, after: Tree) -> list[Change]:
    """In order of path."""
    return list(_changes(before.seen, after.seen))


def _changes(before: Mapping[str, Seen], after: Mapping[str, Seen]) -> Iterator[Change]:
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old is new or (old and new and _same(old, new)):
            continue
        if new is None:
            diff, binary = _diff(path, old.text if old else None, b"")
            yield Change(path=path, change="removed", diff=diff, binary=binary)
            continue
        same_text = old is not None and old.text is not None and old.text == new.text
        was = b"" if old is None else old.text
        diff, binary = ("", False) if same_text or new.link else _diff(path, was, new.text)
        target = (new.text or b"").decode("utf-8", "replace") if new.link else None
        yield Change(
            path=path,
            change="changed" if old else "added",
            mode=new.mode if new.mode and (old is None or old.mode != new.mode) else None,
            size=new.size,
            digest=new.digest,
            diff=diff,
            binary=binary,
            target=target,
        )


def _same(old: Seen, new: Seen) -> bool:
    if not (old.digest and new.digest):  # one was too large to be looked into
        return old.size == new.size
    return (old.mode, old.digest, old.link) == (new.mode, new.digest, new.link)


def _diff(path: str, old: bytes | None, new: bytes | None) -> tuple[str, bool]:
    """The unified diff, and whether there is none because one side is binary."""
    if old is None or new is None:
        return "", False
    if b"\0" in old or b"\0" in new:
        return "", True
    try:
        before, after = _LINE.findall(old.decode()), _LINE.findall(new.decode())
    except UnicodeDecodeError:
        return "", True
    if len(before) + len(after) > DIFF_LINES:
        # difflib is quadratic at worst: a file that large is compared where it differs.
        head = _common(before, after)
        tail = _common(before[head:][::-1], after[head:][::-1])
        if len(before) + len(after) - 2 * (head + tail) > DIFF_LINES:
            return "", False
    lines = difflib.unified_diff(before, after, path, path)
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return (text, False) if len(text) <= DIFF_SIZE else ("", False)


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def left_by(task: Task, archive: Archive) -> Left:
    """What is judged of a workspace, as a difference to what the task starts with."""
    judged, start = judged_workspace(task, archive), workspace_of(task)
    files: list[FileLeft] = []
    size = 0
    for entry in judged:
        if entry.kind == "directory" or entry == start.entries.get(entry.path):
            continue
        size += entry.size
        if size > LEFT_BYTES:
            return Left(files=[], removed=[], missing=f"the files that are new have over {LEFT_BYTES} bytes")
        files.append(FileLeft(path=entry.path, mode=entry.mode, data=Data.of(entry.data), link=entry.kind == "link"))
    return Left(files=files, removed=sorted(path for path in start.entries if path not in judged.entries))


def workspace_from(task: Task, left: Left) -> Archive:
    """The other way round. :raises ValueError: it was not recorded whole, or is none that an export gives; says why."""
    if left.missing:
        raise ValueError(f"the workspace was not recorded: {left.missing}")
    start = workspace_of(task).without(set(left.removed))
    entries: dict[str, Entry] = {}
    for file in left.files:
        data, path = file.data.bytes, clean_path(file.path)
        if file.link and not link_stays_inside(path, os.fsdecode(data)):
            raise ValueError(f"the workspace has a link that leaves it: {path!r}")
        entries[path] = Entry(path, "link" if file.link else "file", file.mode, len(data), data)
    return start.overlay(Archive(dict(sorted(entries.items()))))
