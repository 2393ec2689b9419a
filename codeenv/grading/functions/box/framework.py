"""Runs test files under pytest, in the tests' box, where no code of the solution's ever is."""

import os
import sys

OFF = (
    "cacheprovider", "doctest", "faulthandler", "junitxml", "pastebin", "setuponly", "setupplan", "stepwise",
    "threadexception", "unraisableexception",
)  # fmt: skip
SHIPPED = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


class Plugin:
    """Records what was collected and how each test ended, as it ends."""

    def __init__(self, pytest, peer, record):
        self.peer, self.record = peer, record
        self.state = {}
        self.pytest_runtest_setup = self.pytest_runtest_call = self.pytest_runtest_teardown = stage(pytest)

    def pytest_load_initial_conftests(self):
        # The framework is complete: nothing that it looks for can be found in the solution's workspace.
        sys.meta_path.append(self.peer)

    pytest_load_initial_conftests.pytest_impl = {"tryfirst": True}  # noqa: RUF012

    def pytest_collectreport(self, report):
        if report.failed:
            self.record(kind="broken", id=report.nodeid, message=said(report))

    def pytest_collection_finish(self, session):
        self.peer.test_modules.update(item.module.__name__ for item in session.items if getattr(item, "module", None))
        self.record(kind="collected", ids=[plain(item.nodeid) for item in session.items])

    def pytest_runtest_logstart(self):
        self.peer.faults.clear()

    def pytest_runtest_logreport(self, report):
        outcome, message, seconds = self.state.get(report.nodeid, ("passed", "", 0.0))
        seconds += report.duration
        if outcome == "passed" and (report.outcome != "passed" or hasattr(report, "wasxfail")):
            outcome = "skipped" if report.skipped or hasattr(report, "wasxfail") else "failed"
            message = said(report)
        if outcome == "passed" and self.peer.faults:
            # Also when the test has caught it: what it then saw was not the solution's doing.
            outcome, message = "failed", self.peer.faults[0]
        self.state[report.nodeid] = outcome, message, seconds
        if report.when == "teardown":
            self.record(kind="test", id=plain(report.nodeid), outcome=outcome, message=message, seconds=seconds)


def stage(pytest):
    @pytest.hookimpl(hookwrapper=True)
    def run(item):
        result = yield
        error = result.excinfo[1] if result.excinfo else None
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, pytest.exit.Exception)):
            # pytest would end the whole run for some of these, and the solution may raise them.
            result.force_exception(AssertionError(f"{type(error).__name__} was raised"))

    return run


def plain(text):
    return text.encode("utf-8", "backslashreplace").decode()


def said(report):
    """What went wrong, without the source of the test."""
    found = getattr(report.longrepr, "reprcrash", None)
    if found is not None:
        return plain(found.message)[:2000]
    if isinstance(report.longrepr, tuple):
        return plain(str(report.longrepr[2]))[:2000]
    lines = [line for line in str(report.longrepr or "").splitlines() if line.startswith("E ")]
    return plain("\n".join(line[1:].strip() for line in lines))[:2000]


def load():
    """:raises ImportError: the box has no pytest, which is no test's fault."""
    import site

    site.main()
    import pytest  # noqa: F401


def run(folder, peer, record):
    import pytest

    shipped = [path for path in (os.path.join(folder, name) for name in SHIPPED) if os.path.exists(path)]
    arguments = [f"--rootdir={folder}", f"--confcutdir={folder}", "-c", shipped[0] if shipped else os.devnull]
    arguments += ["--import-mode=importlib", "--capture=no", "--tb=line", "--no-header", "--no-summary", "-q"]
    for name in OFF:
        arguments += ["-p", f"no:{name}"]
    try:
        pytest.main([*arguments, folder], plugins=[Plugin(pytest, peer, record)])
    except BaseException as error:
        record(kind="broken", message=f"the run was ended by {type(error).__name__}: {error}")
