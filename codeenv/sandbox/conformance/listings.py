"""Listing and removing."""

from __future__ import annotations

import errno

from codeenv.sandbox.api import Sandbox
from codeenv.sandbox.conformance.support import failure, in_time


async def check_a_listing_tells_kind_mode_and_size_in_order(box: Sandbox) -> None:
    """Files, directories and links are listed in order of path, with mode and size and without contents; no FIFO is."""
    await box.exec("mkdir b a; printf 12345 > b/f; chmod 750 b/f; chmod 700 a; ln -s b/f c; mkfifo z; touch -- a.x -a")
    listed = [
        (e.path, e.kind, e.mode if e.kind != "link" else 0, e.size if e.kind == "file" else 0, e.data)
        for e in await box.list_files()
    ]
    await box.remove("z")
    assert listed == [
        ("-a", "file", 0o644, 0, b""),
        ("a", "directory", 0o700, 0, b""),
        ("a.x", "file", 0o644, 0, b""),
        ("b", "directory", 0o755, 0, b""),
        ("b/f", "file", 0o750, 5, b""),
        ("c", "link", 0, 0, b""),
    ]


async def check_a_listing_is_relative_to_its_root(box: Sandbox) -> None:
    """The paths of a listing are relative to the directory that was asked for, which may be a link."""
    await box.write_file("d/e/f", b"")
    await box.exec("ln -s d link")
    for root in ("d", f"{box.workdir}/d", "link"):
        assert [entry.path for entry in await box.list_files(root)] == ["e", "e/f"], root
    assert await box.list_files("d/e/..") == await box.list_files("d")


async def check_a_listing_follows_no_link(box: Sandbox) -> None:
    """Links to directories, also in a circle, are listed and not walked."""
    await box.exec("mkdir d; ln -s .. d/up; ln -s d link")
    assert [entry.path for entry in await box.list_files()] == ["d", "d/up", "link"]


async def check_a_listing_is_bounded(box: Sandbox) -> None:
    """Exactly as many entries as the limit are listed; one more is OSError with E2BIG."""
    await box.exec("mkdir many; cd many; touch $(seq 1 300)")
    assert len(await box.list_files("many", limit=300)) == 300
    assert (await failure(box.list_files("many", limit=299), OSError)).errno == errno.E2BIG


async def check_a_listing_of_nothing(box: Sandbox) -> None:
    """An empty directory has no entries; a missing one is FileNotFoundError, a file NotADirectoryError."""
    assert await box.list_files() == []
    await failure(box.list_files("missing"), FileNotFoundError)
    await box.write_file("f", b"")
    await failure(box.list_files("f"), NotADirectoryError)


async def check_removing_takes_one_file(box: Sandbox) -> None:
    """A file that is removed is gone, and its directory stays."""
    await box.write_file("d/f", b"x")
    await box.write_file("d/g", b"x")
    await box.remove("d/f")
    assert [entry.path for entry in await box.list_files()] == ["d", "d/g"]


async def check_removing_a_tree_spares_what_its_links_point_to(box: Sandbox) -> None:
    """Removing takes a whole directory or a link, and never what a link points to."""
    await box.exec("mkdir -p keep tree/a/b tree/c; touch keep/x tree/a/b/y; ln -s ../keep tree/l; ln -s keep top")
    await box.remove("tree")
    await box.remove("top")
    assert [entry.path for entry in await box.list_files()] == ["keep", "keep/x"]


async def check_removing_bears_closed_and_deep_directories(box: Sandbox) -> None:
    """Directories without rights and trees deeper than a path can be long are removed."""
    deep = "import os\nfor i in range(1000):\n os.mkdir('d' * 20); os.chdir('d' * 20)\nopen('leaf', 'w')"
    await box.exec("mkdir -p tree/shut/in; touch tree/shut/in/x; chmod 0 tree/shut/in tree/shut")
    assert (await box.exec(["python3", "-c", deep], cwd="tree")).exit_code == 0
    with in_time(20):
        await box.remove("tree")
    assert await box.list_files() == []
