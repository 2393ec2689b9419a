"""Runs the hidden tests in the grading box, started as `python -I -B -c <this file>`.

argv: the tests' directory, the workspace. Records, one JSON object a line, go to what was our stdout; the tests' own
output goes nowhere. pytest is imported and its plugins are loaded before the workspace is importable, and the workspace comes last on
sys.path: nothing in it can shadow the framework, configure it or register a plugin.
"""

import json
import os
import sys

MESSAGE_LIMIT = 2000


class Evidence:
    """A plugin that reports what was collected and how each test ended, as it ends."""

    def __init__(self, descriptor, workspace):
        self.descriptor = descriptor
        self.workspace = workspace
        self.state = {}  # test id -> [outcome, message, seconds]

    def write(self, **record):
        data = (json.dumps(record) + "\n").encode()
        while data:
            data = data[os.write(self.descriptor, data) :]

    def pytest_sessionstart(self, session):
        self.write(kind="start")
        sys.path.append(self.workspace)

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(kind="broken", id=report.nodeid, message=crash(report))

    def pytest_collection_finish(self, session):
        self.write(kind="collected", ids=[item.nodeid for item in session.items])

    def pytest_runtest_logreport(self, report):
        seconds = self.state.get(report.nodeid, ["", "", 0.0])[2] + report.duration
        outcome, message = "passed", ""
        previous = self.state.get(report.nodeid)
        if previous and previous[0] != "passed":
            outcome, message = previous[:2]
        elif report.outcome != "passed" or hasattr(report, "wasxfail"):
            outcome = "skipped" if report.skipped or hasattr(report, "wasxfail") else "failed"
            message = crash(report)
        self.state[report.nodeid] = [outcome, message, seconds]
        if report.when == "teardown":
            self.write(kind="test", id=report.nodeid, outcome=outcome, message=message, seconds=seconds)


def crash(report):
    """What went wrong, without the source of the test."""
    found = getattr(report.longrepr, "reprcrash", None)
    if found is not None:
        text = found.message
    elif isinstance(report.longrepr, tuple):
        text = str(report.longrepr[2])
    else:  # a collection error comes as text: its last lines name the exception
        lines = [line for line in str(report.longrepr or "").splitlines() if line.startswith("E ")]
        text = "\n".join(line[1:].strip() for line in lines)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 4] + " ..."


def main():
    tests, workspace = sys.argv[1:3]
    descriptor = os.dup(1)
    os.set_inheritable(descriptor, False)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    import pytest

    sys.path.append(tests)
    off = ["cacheprovider", "junitxml", "pastebin", "stepwise", "doctest", "setuponly", "setupplan", "faulthandler", "legacypath", "debugging"]  # fmt: skip
    arguments = [f"--rootdir={tests}", f"--confcutdir={tests}", "--import-mode=importlib", "-q", "--no-header", "--tb=short"]
    shipped = [name for name in ("pytest.ini", "pyproject.toml", "tox.ini") if os.path.exists(os.path.join(tests, name))]
    arguments += ["-c", os.path.join(tests, shipped[0]) if shipped else os.devnull, "--capture=no"]
    for name in off:
        arguments += ["-p", f"no:{name}"]
    evidence = Evidence(descriptor, workspace)
    code = int(pytest.main([*arguments, tests], plugins=[evidence]))
    evidence.write(kind="end", code=code)
    os._exit(code)  # threads and exit handlers of the solution have no say


main()
