import pytest

from drawers import ConfigError, load


def run(files, name="main"):
    """Load from a dict of files; a str is the only file."""
    if isinstance(files, str):
        files = {"main": files}

    def read(asked):
        if asked not in files:
            raise FileNotFoundError(asked)
        return files[asked]

    return load(name, read)


VALUES = {
    "plain": [
        ("plain", "k =  a b\t", "a b"),
        ("no-blanks", "k=v=w", "v=w"),
        ("empty", "k =", ""),
        ("crlf", "k = v\r\n", "v"),
        ("hash-and-quotes-inside", 'k = a # "b" ; c', 'a # "b" ; c'),
    ],
    "escapes": [
        ("escapes", r"k = \sa\tb\nc\\n\u00e9\u0041B\s", " a\tb\nc\\n\u00e9AB "),
        ("trimmed-before-escapes", "k = \\t x \\s ", "\t x  "),
    ],
    "backslashes-and-continuation": [
        ("even-backslashes-end", "k = a\\\\\nj = 2", "a\\"),
        ("continued", "k = a \\\n   b", "a b"),
        ("continued-without-blank", "k = a\\\n\t b\\\nc", "abc"),
        ("three-backslashes", "k = a\\\\\\\n b", "a\\b"),
        ("continued-after-key", "k\\\n = v", "v"),
        ("comment-sign-in-continuation", "k = a\\\n# b", "a# b"),
        ("continued-by-empty-line", "k = a\\\n\nj = 2", "a"),
        ("comment-never-continues", "# note \\\nk = v", "v"),
    ],
    "setting-and-appending": [
        ("append", "k = a\nk += b\nk+=c", "a b c"),
        ("append-to-empty", "k =\nk += b\nk +=", " b "),
        ("append-to-absent", "k += b", "b"),
        ("append-escaped-blanks", "k = a\\s\nk += \\sb", "a   b"),
        ("last-wins", "k = 1\nk = 2", "2"),
    ],
    "unusual-characters": [
        ("other-blanks-stay", "k = \u00a0x\x0b", "\u00a0x\x0b"),
        ("line-separators-are-no-ends", "k = a\u2028b\x0cc\x85d", "a\u2028b\x0cc\x85d"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", VALUES)
def test_value(group):
    for what, text, want in VALUES[group]:
        assert run(text)[""]["k"] == want, f"{what}: {text!r}"


def test_sections_and_order():
    got = run("b.1 = x\n[ two words ]\nk = 1\nj = 2\n[empty]\n[two words]\nk = 3\n  [one]  \nz = 1\n")
    assert got == {"": {"b.1": "x"}, "two words": {"k": "3", "j": "2"}, "empty": {}, "one": {"z": "1"}}
    assert list(got) == ["", "two words", "empty", "one"] and list(got["two words"]) == ["k", "j"]


def test_nothing_at_all():
    assert run("") == {"": {}} and run("\n # x\n\t\n") == {"": {}}


def test_unset():
    got = run("a = 1\nb = 2\n@unset a\na = 4\n[s]\na = 3\n@unset\ta")
    assert got == {"": {"b": "2", "a": "4"}, "s": {}} and list(got[""]) == ["b", "a"]


def test_include_sections():
    got = run(
        {
            "main": "[s]\na = 1\n@include part\nb = 2\n",
            "part": "a += x\n[t]\nc = 3\n@include deeper\nd = 4\n",
            "deeper": "e = 5\n[u]\n",
        }
    )
    assert got == {"": {}, "s": {"a": "1 x", "b": "2"}, "t": {"c": "3", "e": "5", "d": "4"}, "u": {}}


def test_paths():
    asked = []
    files = {
        "conf/main.ini": "@include sub/a.ini\n@include ./x//../b.ini\n@include /top.ini\n@include ../conf/sub/a.ini",
        "conf/sub/a.ini": "@include ../b.ini\na += 1",
        "conf/b.ini": "b += 1",
        "top.ini": "@include conf/b.ini\n@include? /conf/none.ini",
    }

    def read(name):
        asked.append(name)
        if name not in files:
            raise FileNotFoundError(name)
        return files[name]

    assert load("./conf/../conf/main.ini", read) == {"": {"b": "1 1 1 1", "a": "1 1"}}
    sub = ["conf/sub/a.ini", "conf/b.ini"]
    assert asked == ["conf/main.ini", *sub, "conf/b.ini", "top.ini", "conf/b.ini", "conf/none.ini", *sub]


def test_include_path_with_blanks_and_backslash():
    assert run({"main": "@include  my \\n file ", "my \\n file": "k = v"}) == {"": {"k": "v"}}


def test_missing_main_file_passes_through():
    with pytest.raises(FileNotFoundError):
        run({}, "main")


ERRORS = {
    "settings": [
        ("no-sign", "a = 1\nword", "main", 2),
        ("empty-key", "= 1", "main", 1),
        ("bad-key", "a b = 1", "main", 1),
        ("non-ascii-key", "\u00e4 = 1", "main", 1),
    ],
    "headers": [
        ("open-header", "\n\n[s", "main", 3),
        ("empty-header", "[  ]", "main", 1),
        ("bracket-in-header", "[a[b]", "main", 1),
        ("text-after-header", "[a] b", "main", 1),
    ],
    "escapes": [
        ("unknown-escape", "k = \\x", "main", 1),
        ("short-u", "k = \\u12g4", "main", 1),
        ("u-with-foreign-digits", "k = \\u00\u0661\u0661", "main", 1),
        ("u-with-underscore", "k = \\u1_23", "main", 1),
        ("backslash-then-blank", "k = a\\ \nj = 1", "main", 1),
    ],
    "line-numbers": [
        ("error-in-continuation", "a = 1\nk = a\\\n b\\\n \\q\n", "main", 2),
        ("after-continuation", "k = a\\\n\\\n b\n\nword", "main", 5),
        ("after-comments", "# a\\\n\nword", "main", 3),
    ],
    "continuations": [
        ("nothing-follows", "a = 1\n\nk = b\\\n c\\", "main", 3),
        ("nothing-follows-newline", "k = b\\\n", "main", 1),
    ],
    "unset": [
        ("unset-absent", "a = 1\n[s]\n@unset a", "main", 3),
        ("unset-twice", "a = 1\n@unset a\n@unset a", "main", 3),
        ("unset-without-key", "@unset ", "main", 1),
    ],
    "directives": [
        ("unknown-directive", "@import x", "main", 1),
        ("no-blank-after-directive", "@includepart", "main", 1),
        ("capital-directive", "@Include part", "main", 1),
    ],
    "missing": [
        ("missing", "a = 1\n@include nowhere", "main", 2),
    ],
    "outside": [
        ("outside", {"d/main": "\n@include ../../x"}, "d/main", 2),
        ("outside-optional", {"d/main": "@include? ../.."}, "d/main", 1),
        ("outside-from-root", {"d/main": "@include /../x"}, "d/main", 1),
    ],
    "circles": [
        ("self", {"d/main": "\n@include ./main"}, "d/main", 2),
        ("circle", {"d/main": "@include a\n", "d/a": "\n@include ../b\n", "b": "\n\n@include? d/main"}, "b", 3),
        ("inner-circle", {"d/main": "@include a\n", "d/a": "@include b\n", "d/b": "\n@include a"}, "d/b", 2),
    ],
    "inside-includes": [
        ("missing-inside-optional", {"d/main": "@include? a\n", "d/a": "k = 1\n@include nowhere"}, "d/a", 2),
        ("syntax-inside", {"d/main": "@include a\n", "d/a": "k = 1\n\nword"}, "d/a", 3),
        ("after-an-include", {"d/main": "@include a\nword", "d/a": "k = 1\n\n"}, "d/main", 2),
    ],
    "directive-over-two-lines": [
        ("directive-over-two-lines", {"d/main": "\n@include\\\n a b\\\n  c"}, "d/main", 2),
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", ERRORS)
def test_error(group):
    for what, files, file, line in ERRORS[group]:
        try:
            run(files, "main" if isinstance(files, str) else "d/main")
        except ConfigError as error:
            assert (error.file, error.line) == (file, line), f"{what}: {files!r}"
            assert str(error).startswith(f"{file}:{line}: ")
        else:
            pytest.fail(f"{what}: no ConfigError for {files!r}")
