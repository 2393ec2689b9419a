"""A tree out of one box and into another."""

from __future__ import annotations

import random

import anyio

from codeenv.sandbox.api import ExportTooLarge, Sandbox, SandboxProvider, SandboxSpec
from codeenv.sandbox.archive import Archive, ArchiveLimits, Entry
from codeenv.sandbox.conformance.support import SESSION, failure, in_time, marker, settles

_TREE = r"""
mkdir -p src/empty "a b/ü" run; printf 'print(1)\n' > src/main.py; chmod 755 src/main.py
printf x > "a b/ü/'\"" ; chmod 600 "a b/ü/'\""; ln -s src/main.py link; ln -s ../src run/up; ln -s nowhere dangling
: > zero; touch $'new\nline' $'not-utf8-\xff' ./-dash; head -c 3000000 /dev/urandom > large; chmod 400 large
chmod 700 run; chmod 444 zero"""


async def check_a_tree_comes_back_as_it_was(provider: SandboxProvider, spec: SandboxSpec, box: Sandbox) -> None:
    """What one box exports another imports and exports again, equal to the bit: contents, modes, links, names."""
    result = await box.exec(_TREE)
    assert result.exit_code == 0, result
    archive = await box.export()
    assert archive.skipped == ()
    assert archive.entries["zero"] == Entry("zero", "file", 0o444, 0, b"")
    assert (archive.entries["link"].kind, archive.entries["link"].data) == ("link", b"src/main.py")
    assert (archive.entries["src/empty"].kind, archive.entries["run"].mode) == ("directory", 0o700)
    assert {"not-utf8-\udcff", "new\nline", "-dash"} <= set(archive.files)
    assert archive.entries["large"].data == await box.read_file("large")
    async with provider.create(spec) as second:
        await second.import_(archive)
        assert await second.export() == archive
        shown = "sha256sum -- */* large; stat -c '%n %a %F' -- *; readlink link run/up dangling"
        assert (await second.exec(shown)).stdout == (await box.exec(shown)).stdout


async def check_an_import_may_be_repeated_and_go_below(box: Sandbox) -> None:
    """An archive goes below any path, whose parents are made, and over itself, read-only files included."""
    archive = Archive.of({"a/f": b"x" * 2_000_000, "g": b"y"}, {"a/f": 0o444, "g": 0o755})
    for _ in range(2):
        await box.import_(archive, "again/below")
    assert (await box.export("again/below")).files == archive.files
    assert (await box.exec("stat -c %a again/below/a/f again/below/g")).stdout == b"444\n755\n"


async def check_special_files_and_links_that_leave_are_left_behind(box: Sandbox) -> None:
    """FIFOs, sockets and links that leave the tree are not exported; `skipped` names them. Links within it are."""
    await box.exec(
        """mkdir d; mkfifo fifo d/fifo; ln -s /nonexistent/x absolute; ln -s ../outside up; ln -s ../in d/in
        ln -s ../../out d/out; ln -s d/../../x sly; ln -s d/../y fine
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'; echo kept > kept"""
    )
    archive = await box.export()
    for path in ("fifo", "d/fifo", "socket"):
        await box.remove(path)
    assert set(archive.entries) == {"d", "d/in", "fine", "kept"}
    assert set(archive.skipped) == {"fifo", "d/fifo", "absolute", "up", "d/out", "sly", "socket"}


async def check_an_export_over_its_bytes_is_too_large(box: Sandbox) -> None:
    """Exactly the limit of bytes is an archive; more, in one file or in all, is ExportTooLarge, at once, and the box
    goes on."""
    await box.exec("head -c 600 /dev/zero > a; mkdir d; head -c 400 /dev/zero > d/b")
    assert len((await box.export(limits=ArchiveLimits(max_bytes=1000))).entries) == 3
    await failure(box.export(limits=ArchiveLimits(max_bytes=999)), ExportTooLarge)
    await box.exec("truncate -s 400M sparse")
    with in_time():
        await failure(box.export(), ExportTooLarge)
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def check_an_export_leaves_out_what_it_is_told_to(box: Sandbox) -> None:
    """Files over a size, and what bears a name, with all below it: neither counts for the limits."""
    await box.exec("mkdir -p .git/x node_modules d; touch .git/x/y node_modules/z d/m.pyc; head -c 9 /dev/zero > d/big")
    await box.exec("head -c 8 /dev/zero > d/small; echo kept > d/git")
    names = (".*", "node_modules", "*.pyc")
    left = await box.export(limits=ArchiveLimits(max_bytes=13, max_entries=3, max_file_bytes=8, leave_out=names))
    assert set(left.entries) == {"d", "d/small", "d/git"}
    assert left.large == {"d/big": 9}
    assert set((await box.export()).entries) >= {".git/x/y", "node_modules/z", "d/m.pyc", "d/big"}


async def check_an_export_over_its_entries_is_too_large(box: Sandbox) -> None:
    """Exactly the limit of entries is an archive, directories counted; one more is ExportTooLarge."""
    await box.exec("mkdir -p 1/2; touch 1/2/3 4")
    assert len((await box.export(limits=ArchiveLimits(max_entries=4))).entries) == 4
    await failure(box.export(limits=ArchiveLimits(max_entries=3)), ExportTooLarge)
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def check_an_export_of_nothing(box: Sandbox) -> None:
    """An empty directory is an empty archive; a missing one is FileNotFoundError, a file NotADirectoryError."""
    assert await box.export() == Archive()
    await failure(box.export("missing"), FileNotFoundError)
    await box.write_file("f", b"")
    await failure(box.export("f"), NotADirectoryError)


async def check_stop_processes_kills_first(box: Sandbox) -> None:
    """`stop_processes` ends every process of the box before the export: running commands (with 137) and daemons."""
    argument, codes = marker(), list[int]()

    async def run() -> None:
        codes.append((await box.exec(f"sleep {argument}")).exit_code)

    await box.exec(f"{SESSION} sleep {argument} & touch kept")
    with in_time():
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await settles(box, argument, 2)
            assert set((await box.export(stop_processes=True)).entries) == {"kept"}
    await settles(box, argument, 0)
    assert codes == [137]
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def check_an_export_spares_processes(box: Sandbox) -> None:
    """Without `stop_processes` an export leaves daemons alone."""
    argument = marker()
    await box.exec(f"{SESSION} sleep {argument} & echo")
    await settles(box, argument, 1)
    await box.export()
    await settles(box, argument, 1)


async def check_an_import_makes_room_for_itself(box: Sandbox) -> None:
    """What stands in an archive's way goes, as in `Archive.overlay`: no link is followed, and the rest stays."""
    await box.exec(
        "mkdir -p keep folder/with; echo old > keep/f; touch folder/with/x file\n"
        "ln -s keep parent; ln -s keep/f f; ln -s keep d"
    )
    new = Archive(
        {
            "d": Entry("d", "directory", 0o755),
            "f": Entry("f", "file", 0o644, 3, b"new"),
            "parent/f": Entry("parent/f", "file", 0o644, 3, b"new"),
            "file/below": Entry("file/below", "file", 0o644, 3, b"new"),
            "folder": Entry("folder", "file", 0o644, 3, b"new"),
            "l": Entry("l", "link", 0o777, 6, b"keep/f"),
        }
    )
    before = await box.export()
    await box.import_(new)
    after = await box.export()
    assert after.files == {"keep/f": b"old\n", "f": b"new", "parent/f": b"new", "file/below": b"new", "folder": b"new"}
    assert {p: (e.kind, e.data) for p, e in after.entries.items() if e.kind != "directory"} == {
        p: (e.kind, e.data) for p, e in before.overlay(new).entries.items() if e.kind != "directory"
    }
    assert after.entries["d"].kind == after.entries["parent"].kind == "directory"


async def check_an_archive_that_leaves_the_tree_is_refused(box: Sandbox) -> None:
    """An entry that is absolute, goes up, is the root itself or has a NUL is ValueError."""
    for path in ("/abs", "../up", "a/../../up", "", ".", "a\0b"):
        await failure(box.import_(Archive({path: Entry(path, "file", 0o644, 1, b"x")})), ValueError)
    assert await box.list_files() == []


async def check_many_small_files_go_in_and_out(box: Sandbox) -> None:
    """A thousand small files go in and come out, every one as it was."""
    files = {f"d{i % 50}/f{i}": random.Random(i).randbytes(i % 300) for i in range(1000)}
    with in_time(40):
        await box.import_(Archive.of(files))
        assert (await box.export()).files == files
