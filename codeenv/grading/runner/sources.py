"""The tests' source, kept in memory until it is compiled and nowhere else: a solution that looks for it on the disk, or
asks for the line that calls it, finds empty files. Runs inside the grading box, on Python 3.9 and newer."""

import os


class Sources:
    """Takes the source of test files and conftests out of the files below `tests`."""

    def __init__(self, tests, workspace):
        self.texts = {}  # real path -> bytes, until it is compiled
        for folder, _, names in os.walk(os.path.realpath(tests)):
            for name in names:
                if name == "conftest.py" or (name.endswith(".py") and (name[:5] == "test_" or name[-8:] == "_test.py")):
                    path = os.path.join(folder, name)
                    with open(path, "r+b") as file:
                        self.texts[path] = file.read()
                        file.truncate(0)
        self.workspace = os.path.realpath(workspace) + os.sep
        self.seen = {}  # test id -> its code

    def install(self, rewrite):
        """Into pytest's module that compiles tests."""
        original = rewrite._rewrite_test

        def _rewrite_test(path, config):
            text = self.texts.pop(os.path.realpath(path), None)
            return original(path if text is None else Kept(path, text), config)

        rewrite._rewrite_test = _rewrite_test

    def replaced(self, item):
        """Whether a test, looked at through decorators, runs other code than when this was first asked of it, or the
        workspace's."""
        function = getattr(item, "obj", None)
        while getattr(function, "__wrapped__", None) is not None:
            function = function.__wrapped__
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if self.seen.setdefault(item.nodeid, code) is not code:
            return True
        return code is not None and os.path.realpath(code.co_filename).startswith(self.workspace)


class Kept:
    """A path whose content is ours."""

    def __init__(self, path, text):
        self.path = path
        self.text = text

    def __fspath__(self):
        return os.fspath(self.path)

    def __str__(self):
        return str(self.path)

    def read_bytes(self):
        return self.text
