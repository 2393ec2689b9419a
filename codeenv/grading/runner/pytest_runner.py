"""Runs the hidden tests in the grading box, started as `python -I -B -c <this file>`.

argv: the tests' directory, the workspace. stdin: a token that begins each record; a line without it counts for nothing,
so writing to every open descriptor forges nothing. Records, one JSON object a line, go to what was our stdout; the
tests' own output goes nowhere. pytest is imported and its plugins are loaded before the workspace is importable, and
the workspace comes last on sys.path: nothing in it can shadow the framework, configure it or register a plugin.
"""

import gc

gc.disable()  # importing makes no garbage; a tenth of pytest's start-up is looking for it

import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402

MESSAGE_LIMIT = 2000
# What no hidden test needs and costs time. (unraisableexception collects garbage five times at the end.) `debugging` is
# not among them: TestCase classes need an option of it.
OFF = (
    "cacheprovider", "doctest", "faulthandler", "junitxml", "pastebin", "setuponly", "setupplan", "stepwise",
    "threadexception", "unraisableexception",
)  # fmt: skip
SHIPPED = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


class Evidence:
    """A plugin that reports what was collected and how each test ended, as it ends."""

    def __init__(self, write, workspace):
        self.write = write
        self.workspace = workspace
        self.state = {}  # test id -> [outcome, message, seconds]

    def pytest_load_initial_conftests(self):
        # The framework is complete. The tests' own conftest comes next, and may need the solution.
        self.write(kind="start")
        sys.path.append(self.workspace)

    pytest_load_initial_conftests.pytest_impl = {"tryfirst": True}  # noqa: RUF012

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(kind="broken", id=report.nodeid, message=crash(report))

    def pytest_collection_finish(self, session):
        self.write(kind="collected", ids=[plain(item.nodeid) for item in session.items])

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
            self.write(kind="test", id=plain(report.nodeid), outcome=outcome, message=message, seconds=seconds)


def plain(text):
    return text.encode("utf-8", "backslashreplace").decode()


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
    text = plain(text)
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 4] + " ..."


def recorder(descriptor, token):
    # Bound here, before the solution loads: it may replace these functions in their modules.
    dumps, os_write = json.dumps, os.write

    def write(**record):
        data = (token + dumps(record) + "\n").encode()
        while data:
            data = data[os_write(descriptor, data) :]

    return write


def main():
    tests, workspace = sys.argv[1:3]
    token = sys.stdin.readline().strip()
    descriptor = os.dup(1)
    os.set_inheritable(descriptor, False)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    import pytest

    gc.freeze()
    gc.enable()
    sys.path.append(tests)
    shipped = [path for path in (os.path.join(tests, name) for name in SHIPPED) if os.path.exists(path)]
    arguments = [f"--rootdir={tests}", f"--confcutdir={tests}", "-c", shipped[0] if shipped else os.devnull]
    arguments += ["--import-mode=importlib", "--capture=no", "--tb=line", "--no-header", "--no-summary", "-q"]
    for name in OFF:
        arguments += ["-p", f"no:{name}"]
    write, leave = recorder(descriptor, token), os._exit
    evidence = Evidence(write, workspace)
    try:
        code = int(pytest.main([*arguments, tests], plugins=[evidence]))
    except BaseException as error:  # SystemExit at the import of a solution, which pytest lets through
        write(kind="broken", message=f"the run was ended by {type(error).__name__}")
        code = 1
    leave(code)  # threads and exit handlers of the solution have no say


main()
