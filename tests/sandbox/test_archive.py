"""A workspace as one value: out of a box, laid over another, into a box."""

from __future__ import annotations

import random

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeenv.sandbox.api import ExportTooLarge, Sandbox, SandboxSpec
from codeenv.sandbox.archive import Archive, ArchiveLimits, Entry, clean_path, link_stays_inside

SETUP = r"""
mkdir -p src/empty "a b/ü" run; printf 'print(1)\n' > src/main.py; chmod 755 src/main.py
printf x > "a b/ü/'\"" ; chmod 600 "a b/ü/'\""; ln -s src/main.py link; ln -s ../src run/up; ln -s nowhere dangling
: > zero; touch $'new\nline'; touch $'not-utf8-\xff'
chmod 700 run; chmod 444 zero; head -c 3000000 /dev/urandom > large; chmod 400 large
"""


@pytest.mark.anyio
async def test_a_tree_goes_out_of_one_box_and_into_another_as_it_was(any_provider) -> None:
    listing = (
        "find . -mindepth 1 -printf '%P %y %m %l\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum"
    )
    async with any_provider.create(SandboxSpec()) as first, any_provider.create(SandboxSpec()) as second:
        await first.exec(SETUP)
        archive = await first.export()
        assert archive.skipped == ()
        await second.import_(archive)
        before, after = (await first.exec(listing)), (await second.exec(listing))
        assert before.stdout == after.stdout
        assert before.stdout.count(b"\n") > 20
        assert await second.export() == archive
        assert archive.entries["zero"] == Entry("zero", "file", 0o444, 0, b"")
        assert archive.entries["link"].data == b"src/main.py"
        assert "not-utf8-\udcff" in archive.files
        await second.import_(archive, "again/below")  # elsewhere too, and twice over itself, read-only files included
        await second.import_(archive, "again/below")
        assert (await second.export("again/below")).entries == archive.entries


@pytest.mark.anyio
async def test_special_files_and_links_that_leave_are_left_behind(any_box: Sandbox) -> None:
    await any_box.exec(
        """mkdir d; mkfifo fifo d/fifo; ln -s /nonexistent/x absolute; ln -s ../outside up; ln -s ../in d/in
        ln -s ../../out d/out; ln -s d/../../x sly; ln -s d/../y fine
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'; echo kept > kept"""
    )
    archive = await any_box.export()
    assert set(archive.entries) == {"d", "d/in", "fine", "kept"}
    assert set(archive.skipped) == {"fifo", "d/fifo", "absolute", "up", "d/out", "sly", "socket"}


@pytest.mark.anyio
async def test_what_cannot_be_read_is_left_behind(box: Sandbox) -> None:
    await box.exec("mkdir -p shut/in; echo x > shut/x; echo y > unreadable; echo z > kept; chmod 0 shut unreadable")
    archive = await box.export()
    assert archive.files == {"kept": b"z\n"}
    assert set(archive.skipped) == {"shut", "unreadable"}


@pytest.mark.anyio
async def test_a_tree_deeper_than_a_path_can_be_long_does_not_break_the_export(box: Sandbox) -> None:
    deep = "import os\nfor i in range(1500):\n os.mkdir('d' * 20); os.chdir('d' * 20)\nopen('leaf', 'w')"
    await box.exec(["python3", "-c", deep])
    await box.write_file("kept", b"x")
    archive = await box.export()
    assert archive.files == {"kept": b"x"}
    assert len(archive.skipped) == 1
    await box.import_(archive)
    assert (await box.exec("echo fine")).stdout == b"fine\n"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("setup", "limits"),
    [
        ("truncate -s 1T sparse || truncate -s 500M sparse", ArchiveLimits()),
        ("head -c 1001 /dev/zero > f", ArchiveLimits(max_bytes=1000)),
        ("for i in 1 2 3; do head -c 400 /dev/zero > $i; done", ArchiveLimits(max_bytes=1000)),
        ("seq 1 11 | xargs touch", ArchiveLimits(max_entries=10)),
        ("mkdir -p 1/2/3/4", ArchiveLimits(max_entries=3)),
        ("seq 1 10500 | xargs touch", ArchiveLimits()),
    ],
    ids=["sparse", "file", "sum", "files", "folders", "very-many"],
)
async def test_too_much_is_no_archive_at_all(any_box: Sandbox, setup: str, limits: ArchiveLimits) -> None:
    await any_box.exec(setup)
    with anyio.fail_after(20), pytest.raises(ExportTooLarge, match="more than"):
        await any_box.export(limits=limits)
    assert (await any_box.exec("echo fine")).stdout == b"fine\n"


@pytest.mark.anyio
async def test_exactly_the_limit_is_an_archive(any_box: Sandbox) -> None:
    await any_box.exec("head -c 600 /dev/zero > a; mkdir d; head -c 400 /dev/zero > d/b")
    archive = await any_box.export(limits=ArchiveLimits(max_bytes=1000, max_entries=3))
    assert len(archive.entries) == 3


@pytest.mark.anyio
async def test_an_export_of_nothing(any_box: Sandbox) -> None:
    assert await any_box.export() == Archive()
    with pytest.raises(FileNotFoundError):
        await any_box.export("missing")
    await any_box.write_file("f", b"")
    with pytest.raises(NotADirectoryError):
        await any_box.export("f")


WRITERS = {
    "setsid": "setsid sh -c 'while :; do date +%N > f; done' & sleep 0.1",
    "forks": """setsid python3 -c '
import os
for i in range(5): os.fork()
while True: open("f", "w").write("x")' & sleep 0.2""",
    "first-thread-ended": """python3 -c '
import ctypes, threading, os
def work():
    while True: open("f", "w").write("x")
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall({"x86_64": 60}.get(os.uname().machine, 93), 0)' & sleep 0.2""",
}


@pytest.mark.anyio
@pytest.mark.parametrize("writer", WRITERS)
async def test_stop_processes_stops_them_first(any_box: Sandbox, writer: str) -> None:
    await any_box.exec(WRITERS[writer])
    assert (await any_box.exec("rm f; sleep 0.1; test -e f")).exit_code == 0
    archive = await any_box.export(stop_processes=True)
    await any_box.exec("rm f; sleep 0.1")
    assert "f" in archive.entries
    assert "f" not in (await any_box.export()).entries


@pytest.mark.anyio
async def test_stop_processes_ends_what_was_running(any_box: Sandbox) -> None:
    async def run() -> None:
        assert (await any_box.exec("sleep 99")).exit_code == 137

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await anyio.sleep(0.1)
            await any_box.export(stop_processes=True)


@pytest.mark.anyio
async def test_an_export_bears_a_tree_that_changes_under_it(any_box: Sandbox) -> None:
    secret = f"{any_box.scratch}/outside"
    await any_box.write_file(secret, b"secret")
    churn = f"""import os, random
def write(n):
    # Never through a link: one of the backends has the host's own files behind it.
    with open(os.open(n, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK), "w") as file:
        file.write("x" * random.randrange(100000))
while True:
    folder = f"d{{random.randrange(5)}}"
    n = f"{{folder}}/f{{random.randrange(20)}}"
    for op in random.sample([
        lambda: os.makedirs(folder, exist_ok=True), lambda: write(n), lambda: os.unlink(n), lambda: os.rmdir(folder),
        lambda: os.mkfifo(n), lambda: os.symlink("{secret}", n), lambda: os.rename(folder, f"d{{random.randrange(5)}}"),
    ], 4):
        try: op()
        except OSError: pass
"""
    await any_box.write_file("churn.py", churn.encode())
    await any_box.exec("(python3 churn.py & python3 churn.py &) ; sleep 0.2")
    seen: set[str] = set()
    for _ in range(30):
        archive = await any_box.export()
        seen |= set(archive.entries)
        for entry in archive:
            assert entry.kind != "link"  # they all leave the tree
            assert entry.data != b"secret"
            assert len(entry.data) == entry.size
        await any_box.list_files()
    assert len(seen) > 20


@pytest.mark.anyio
async def test_an_import_makes_room_for_itself(any_box: Sandbox) -> None:
    """What stands in its way goes, as in `overlay`, and no link is followed."""
    await any_box.exec(
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
    before = await any_box.export()
    await any_box.import_(new)
    after = await any_box.export()
    assert after.files == {"keep/f": b"old\n", "f": b"new", "parent/f": b"new", "file/below": b"new", "folder": b"new"}
    assert {p: (e.kind, e.data) for p, e in after.entries.items() if e.kind != "directory"} == {
        p: (e.kind, e.data) for p, e in before.overlay(new).entries.items() if e.kind != "directory"
    }
    assert after.entries["d"].kind == after.entries["parent"].kind == "directory"


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/abs", "../up", "a/../../up", "", ".", "a\0b"], ids=ascii)
async def test_an_archive_that_leaves_the_tree_is_refused(any_box: Sandbox, path: str) -> None:
    with pytest.raises(ValueError, match="relative path"):
        await any_box.import_(Archive({path: Entry(path, "file", 0o644, 1, b"x")}))


@pytest.mark.anyio
async def test_many_small_files_go_in_and_out(any_box: Sandbox) -> None:
    files = {f"d{i % 50}/f{i}": random.Random(i).randbytes(i % 300) for i in range(1000)}
    with anyio.fail_after(20):
        await any_box.import_(Archive.of(files))
        assert (await any_box.export()).files == files


# --- the value itself ------------------------------------------------------------------------------------------


def tree(**files: bytes) -> Archive:
    return Archive.of({name.replace("__", "/"): data for name, data in files.items()})


def directory(path: str) -> Archive:
    return Archive({path: Entry(path, "directory", 0o755)})


def link(path: str, target: bytes) -> Archive:
    return Archive({path: Entry(path, "link", 0o777, len(target), target)})


@pytest.mark.parametrize(
    ("ours", "theirs", "paths"),
    [
        (tree(a=b"1"), tree(a=b"2"), {"a"}),
        (tree(a=b"1"), tree(b=b"2"), {"a", "b"}),
        (tree(a=b"1"), tree(a__b=b"2"), {"a/b"}),
        (tree(a=b"1"), tree(a__b__c=b"2"), {"a/b/c"}),
        (link("a", b"x"), tree(a__b=b"2"), {"a/b"}),
        (tree(a__b=b"1"), tree(a=b"2"), {"a"}),
        (tree(a__b__c=b"1", a__d=b"1"), tree(a=b"2"), {"a"}),
        (directory("a").overlay(tree(a__b=b"1")), tree(a=b"2"), {"a"}),
        (directory("a").overlay(tree(a__b=b"1")), link("a", b"x"), {"a"}),
        (directory("a").overlay(tree(a__b=b"1")), directory("a"), {"a", "a/b"}),
        (tree(a=b"1"), directory("a"), {"a"}),
        (link("a", b"x"), directory("a"), {"a"}),
        (tree(a__b=b"1", ab=b"1"), tree(a=b"2"), {"a", "ab"}),
        (Archive(), tree(a=b"1"), {"a"}),
        (tree(a=b"1"), Archive(), {"a"}),
    ],
    ids=lambda value: ",".join(value.entries) if isinstance(value, Archive) else "",
)
def test_laying_one_tree_over_another(ours: Archive, theirs: Archive, paths: set[str]) -> None:
    merged = ours.overlay(theirs)
    assert set(merged.entries) == paths
    assert all(merged.entries[path] == theirs.entries[path] for path in theirs.entries)


names = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(names, st.binary(max_size=3)), st.dictionaries(names, st.binary(max_size=3)))
def test_a_merged_tree_could_stand_on_a_disk(ours: dict[str, bytes], theirs: dict[str, bytes]) -> None:
    def possible(files: dict[str, bytes]) -> dict[str, bytes]:
        return {p: d for p, d in files.items() if not any(q.startswith(p + "/") for q in files)}

    merged = Archive.of(possible(ours)).overlay(Archive.of(possible(theirs))).files
    assert possible(merged) == merged
    assert merged.items() >= possible(theirs).items()
    for path, data in possible(ours).items():
        in_the_way = any(p == path or p.startswith(path + "/") or path.startswith(p + "/") for p in possible(theirs))
        assert (merged.get(path) == data) or in_the_way


@pytest.mark.parametrize(
    ("path", "target", "inside"),
    [
        ("a", "b", True),
        ("a/b", "../c", True),
        ("a/b", "../../c", False),
        ("a", "..", False),
        ("a", "/etc", False),
        ("a", "b/../../c", False),
        ("a/b/c", "../../x", True),
        ("a", ".", True),
        ("a", "..x", True),
    ],
)
def test_whether_a_link_stays_inside(path: str, target: str, inside: bool) -> None:
    assert link_stays_inside(path, target) is inside


@pytest.mark.parametrize(
    ("path", "clean"), [("a", "a"), ("./a//b/", "a/b"), ("a/../b", "b"), ("..a", "..a"), ("...", "...")]
)
def test_a_clean_path(path: str, clean: str) -> None:
    assert clean_path(path) == clean


def test_an_archive_of_a_directory(tmp_path) -> None:
    (tmp_path / "d" / "__pycache__").mkdir(parents=True)
    (tmp_path / "d" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (tmp_path / "d" / "run.sh").write_bytes(b"#!")
    (tmp_path / "d" / "run.sh").chmod(0o711)
    (tmp_path / "link").symlink_to("d")
    archive = Archive.from_directory(tmp_path)
    assert list(archive) == [Entry("d/run.sh", "file", 0o755, 2, b"#!")]
    with pytest.raises(FileNotFoundError):
        Archive.from_directory(tmp_path / "missing")


def test_without_takes_only_what_is_named() -> None:
    assert set(tree(a=b"", b=b"", c=b"").without({"a", "c", "x"}).entries) == {"b"}
