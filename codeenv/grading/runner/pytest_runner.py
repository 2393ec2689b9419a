"""Runs the hidden tests in the grading box.

argv: the tests' directory, the workspace. stdin: one line of JSON (`Order` in `codeenv.grading.pytest`) with a token
that begins each record; a line without it counts for nothing, so writing to every open descriptor forges nothing.
Records, one JSON object a line, go to what was our stdout; the tests' own output goes nowhere. pytest is imported and
its plugins are loaded before the workspace is importable, and the workspace comes last on sys.path: nothing in it can
shadow the framework, configure it or register a plugin.
"""

import gc

gc.disable()  # importing makes no garbage; a tenth of pytest's start-up is looking for it

import functools  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402

from codeenv.grading.runner import controls, genuine  # noqa: E402
from codeenv.grading.runner.sources import Sources  # noqa: E402
from codeenv.grading.runner.watch import watch  # noqa: E402

MESSAGE_LIMIT = 2000
# What no hidden test needs and costs time. (unraisableexception collects garbage five times at the end.) `debugging` is
# not among them: TestCase classes need an option of it.
OFF = (
    "cacheprovider", "doctest", "faulthandler", "junitxml", "pastebin", "setuponly", "setupplan", "stepwise",
    "threadexception", "unraisableexception",
)  # fmt: skip
OWN = __name__.rpartition(".")[2]  # how our own code is named; see LOAD in codeenv.grading.pytest
SHIPPED = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


class Evidence:
    """A plugin that reports what was collected and how each test ended, as it ends."""

    def __init__(self, write, tests, workspace, insert):
        self.write = write
        self.tests = tests
        self.workspace = workspace
        self.insert = insert  # puts controls among items
        self.controls = {}  # test id of a control -> its name
        self.state = {}  # test id -> [outcome, message, seconds]
        self.sources = None
        self.replaced = []

    def pytest_load_initial_conftests(self, early_config):
        # The framework is complete. The tests' own conftest comes next, and may need the solution.
        from _pytest.assertion import rewrite

        if early_config.known_args_namespace.assertmode == "rewrite":
            self.sources = Sources(self.tests, self.workspace)
            self.sources.install(rewrite)
        self.changed = watch()
        self.write(kind="start")
        sys.path.append(self.workspace)

    pytest_load_initial_conftests.pytest_impl = {"tryfirst": True}  # noqa: RUF012

    def pytest_runtest_call(self, item):
        if self.sources and item.nodeid not in self.controls and self.sources.replaced(item):
            self.replaced.append(item.nodeid)

    pytest_runtest_call.pytest_impl = {"tryfirst": True}  # noqa: RUF012

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(kind="broken", id=report.nodeid, message=crash(report))

    def pytest_collection_finish(self, session):
        self.session = session
        self.write(kind="collected", ids=[plain(item.nodeid) for item in session.items])
        before = set(session.items)
        self.replaced = [item.nodeid for item in before if self.sources and self.sources.replaced(item)]
        self.insert(session.items)
        self.controls = {item.nodeid: item.name for item in session.items if item not in before}

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
        control = self.controls.get(report.nodeid)
        if control is not None and report.failed:
            self.session.testsfailed -= 1  # it is meant to
        if report.when == "teardown":
            kind, name = ("test", plain(report.nodeid)) if control is None else ("control", control)
            self.write(kind=kind, id=name, outcome=outcome, message=message, seconds=seconds)


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


def recorder(descriptor, token, roots):
    """The function that writes a record, if nothing but what lies below `roots` and ourselves is on the stack: the
    solution has no business there."""
    # Bound here, before the solution loads: it may replace these functions in their modules.
    dumps, os_write, get_frame = json.dumps, os.write, sys._getframe
    ours = get_frame(1).f_globals["main"].__code__

    def write(**record):
        frame, inside, stranger = get_frame(1), False, None
        while frame is not None and not inside:
            code = frame.f_code
            inside = code is ours
            if not inside and stranger is None and not code.co_filename.startswith(roots):
                stranger = code.co_filename
            frame = frame.f_back
        if stranger is not None or not inside:  # a thread's stack does not come from us
            record = {"kind": "forged", "id": stranger or ""}
        data = (token + dumps(record) + "\n").encode()
        while data:
            data = data[os_write(descriptor, data) :]

    return write


def main():
    tests, workspace = sys.argv[1:3]
    order = json.loads(sys.stdin.readline())
    descriptor = os.dup(1)
    os.set_inheritable(descriptor, False)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    import pytest
    from _pytest.assertion import rewrite

    gc.freeze()
    gc.enable()
    sys.path.append(tests)
    shipped = [path for path in (os.path.join(tests, name) for name in SHIPPED) if os.path.exists(path)]
    arguments = [f"--rootdir={tests}", f"--confcutdir={tests}", "-c", shipped[0] if shipped else os.devnull]
    arguments += ["--import-mode=importlib", "--capture=no", "--tb=line", "--no-header", "--no-summary", "-q"]
    arguments += ["--maxfail=0"]  # a control's failure ends no run
    for name in OFF:
        arguments += ["-p", f"no:{name}"]
    unittest = __import__("unittest") if order["unittest"] else None
    genuine.install(genuine.Genuine(tests, order["words"]), rewrite, unittest)
    for name in [name for name in sys.modules if name.partition(".")[0] == "codeenv"]:
        del sys.modules[name]  # the solution may have one of that name
    packages = [os.path.join(path, "") for path in sys.path if path]
    roots = (OWN, os.path.join(tests, ""), os.path.join(sys.base_prefix, ""), *packages)
    write, leave = recorder(descriptor, order["token"], roots), os._exit
    insert = functools.partial(controls.insert, wanted=order["controls"], rewrite=rewrite, function=pytest.Function)
    evidence = Evidence(write, tests, workspace, insert)
    del order
    code = 1
    try:
        code = int(pytest.main([*arguments, tests], plugins=[evidence]))
        write(kind="end", ids=[plain(name) for name in [*evidence.changed(), *evidence.replaced]])
    except BaseException as error:  # SystemExit at the import of a solution, which pytest lets through
        write(kind="broken", message=f"the run was ended by {type(error).__name__}")
    leave(code)  # threads and exit handlers of the solution have no say


main()
