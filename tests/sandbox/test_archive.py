"""A workspace as one value: out of a box, laid over another, into a box."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeenv.sandbox.api import Sandbox
from codeenv.sandbox.archive import Archive, Entry, clean_path, link_stays_inside


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
