"""Runs test files without a framework: `test*` functions without arguments, `unittest.TestCase` classes, and classes
named `Test*`. Runs in the tests' box, for test files that do not need pytest."""

import os
import sys
import time
import types


def load(path, name):
    """Import a test file, without what importlib would import first."""
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = path
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


def run(folder, paths, peer, record):
    """Run the tests of these files, in order; `record(kind, **fields)` is told of each."""
    for path in paths:
        name = path[:-3].replace("/", ".")
        peer.test_modules.add(name)
        try:
            module = load(os.path.join(folder, path), name)
        except BaseException as error:
            record(kind="broken", id=path, message=shown(error, peer))
            continue
        tests = list(tests_of(module, path))
        record(kind="collected", ids=[test_id for test_id, _ in tests])
        for test_id, function in tests:
            one(test_id, function, peer, record)


def one(test_id, function, peer, record):
    peer.faults.clear()
    started = time.perf_counter()
    outcome, message = "passed", ""
    try:
        function()
    except BaseException as error:
        outcome, message = ("skipped" if type(error).__name__ == "SkipTest" else "failed"), shown(error, peer)
    if peer.faults:
        # Also when the test has caught it: what it then saw was not the solution's doing.
        outcome, message = "failed", message or peer.faults[0]
    record(kind="test", id=test_id, outcome=outcome, message=message, seconds=time.perf_counter() - started)


def tests_of(module, path):
    unittest = sys.modules.get("unittest")
    case = unittest.TestCase if unittest else ()
    for name, value in list(vars(module).items()):
        if isinstance(value, type):
            if value.__module__ != module.__name__:
                continue
            if issubclass(value, case):
                yield from cases(value, f"{path}::{name}")
            elif name.startswith("Test"):
                for method in methods(value):
                    yield f"{path}::{name}::{method}", lambda value=value, method=method: getattr(value(), method)()
        elif name.startswith("test") and type(value) is type(tests_of):
            yield f"{path}::{name}", value


def methods(cls):
    """Test methods in the order in which they are written, those of base classes first."""
    names = [name for base in reversed(cls.__mro__) for name in vars(base) if name.startswith("test")]
    return [name for name in dict.fromkeys(names) if callable(getattr(cls, name))]


def cases(cls, prefix):
    """A TestCase's tests; its class fixtures run with the first and after the last."""
    names = methods(cls)
    ready = []

    def test(name):
        if not ready:
            cls.setUpClass()
            ready.append(True)
        try:
            raising(cls(name))
        finally:
            if name == names[-1]:
                cls.tearDownClass()
                cls.doClassCleanups()

    for name in names:
        yield f"{prefix}::{name}", lambda name=name: test(name)


def raising(case):
    """Run one, and raise what it ended with."""
    result = Result()
    case.run(result)
    if result.error is not None:
        raise result.error


class Result:
    """What a TestCase needs of a unittest.TestResult; keeps the first thing that went wrong."""

    failfast = shouldStop = buffer = tb_locals = False
    collectedDurations = ()

    def __init__(self):
        self.error = None

    def wrong(self, _, error):
        self.error = self.error or error[1]

    addError = addFailure = addExpectedFailure = wrong

    def addSubTest(self, _, __, error):
        if error is not None:
            self.wrong(None, error)

    def addSkip(self, _, reason):
        self.error = self.error or SkipTest(reason)

    def addUnexpectedSuccess(self, _):
        self.error = self.error or AssertionError("passed, and was expected to fail")

    def nothing(self, *_):
        pass

    addSuccess = startTest = stopTest = startTestRun = stopTestRun = addDuration = nothing


class SkipTest(Exception):
    """The test skipped itself."""


def shown(error, peer):
    """The message of what a test ended with: the line that failed is the test's own and is not told."""
    try:
        text = str(error)
    except BaseException as other:
        text = f"(unprintable: {type(other).__name__})"
    name = type(error).__name__
    return (text if name == "Fault" else f"{name}: {text}" if text else name)[:2000]
