import pytest

from kiln import SpecError, Step, StepError, parse, render, run


class Actions(dict):
    """Actions by name: each pops its next outcome (an exception to raise, or None); no outcomes left means success."""

    def __init__(self, **outcomes):
        super().__init__()
        self.outcomes = {name: list(items) for name, items in outcomes.items()}
        self.log = []

    def __missing__(self, name):
        def action():
            self.log.append(name)
            queue = self.outcomes.get(name)
            outcome = queue.pop(0) if queue else None
            if outcome is not None:
                raise outcome

        return action


def plan(*rows):
    """Rows "name: needs | properties"; the action is named like the step."""
    lines = []
    for row in rows:
        head, *properties = [part.strip() for part in row.split("|")]
        name, _, needs = head.partition(":")
        lines += [f"step {name}", f"do {name}", *([f"needs {needs}"] if needs.strip() else []), *properties]
    return parse("\n".join(lines))


def flaky(message="flaky"):
    return StepError("Flaky", message)


def busy(message="busy"):
    return StepError("Busy", message)


def statuses(result):
    return {item.step.name: item.status for item in result.steps}


def test_plans_without_the_new_words_are_as_before():
    actions = Actions(b=[flaky("oven cold")])
    result = run(plan("d: c", "a", "b: a", "c: b", "e: a"), actions)
    assert actions.log == ["a", "b", "e"]
    assert not result.ok
    assert render(result) == (
        "d: skipped\na: ok\nb: failed (oven cold)\nc: skipped\ne: ok\nrun failed: 2 ok, 1 failed, 2 skipped\n"
    )
    assert render(run(parse(""), {})) == "run ok: nothing to do\n"


def test_parse_all_words():
    text = "step a\n do x\n retry 2 on Flaky ,Busy\nstep b\n do y\n\tretry  0\n optional\nstep c\n cleanup \n needs a,b\n do z\n retry 9   on  Odd"
    assert parse(text).steps == (
        Step("a", "x", (), 2, frozenset({"Flaky", "Busy"}), False, False),
        Step("b", "y", retry=0, retry_on=None, optional=True),
        Step("c", "z", ("a", "b"), 9, frozenset({"Odd"}), cleanup=True),
    )


@pytest.mark.parametrize(
    "line",
    ["retry", "retry 10", "retry -1", "retry 2.0", "retry x", "retry 2 on", "retry 2 on ,", "retry 2 on A,,B", "retry 2 A",
     "retry 2on A", "retry 2 onA", "retry on A", "optional yes", "cleanup 1"],
    ids=str,
)
def test_malformed_lines(line):
    with pytest.raises(SpecError) as info:
        parse(f"step a\ndo a\n# note\n{line}\n")
    assert info.value.line == 4


@pytest.mark.parametrize("line", ["retry 1", "optional", "cleanup"], ids=str)
def test_second_line_and_line_outside(line):
    with pytest.raises(SpecError) as info:
        parse(f"step z\ndo z\nstep a\ndo a\nneeds z\n{line}\n{line}\n")
    assert info.value.line == 7
    with pytest.raises(SpecError) as info:
        parse(f"\n{line}\nstep a\ndo a\n")
    assert info.value.line == 2


@pytest.mark.parametrize(
    "text, line",
    [
        ("step a\ndo a\nstep b\ndo b\ncleanup\n", 3),
        ("step a\ndo a\nstep c\nneeds b\ndo c\nstep b\ndo b\nneeds a\ncleanup\n", 3),
        ("step b\ndo b\ncleanup\nstep a\ndo a\nneeds ghost\n", 4),
        ("step b\ndo b\ncleanup\nstep a\n", 4),
    ],
    ids=["needs-nothing", "ordinary-needs-cleanup", "unknown-need-first", "no-action-first"],
)
def test_cleanup_checks(text, line):
    with pytest.raises(SpecError) as info:
        parse(text)
    assert info.value.line == line


def test_retry_until_ok():
    actions = Actions(a=[flaky(), busy()])
    pauses = []
    the_plan = plan("a | retry 3", "b: a")
    result = run(the_plan, actions, pause=lambda step, attempt: pauses.append((step, attempt)))
    assert actions.log == ["a", "a", "a", "b"]
    assert pauses == [(the_plan["a"], 1), (the_plan["a"], 2)]
    assert [item.attempts for item in result.steps] == [3, 1]
    assert result.steps[0].error is None and result.ok
    assert render(result) == "a: ok after 3 attempts\nb: ok\nrun ok: 2 ok\n"


def test_retries_used_up():
    pauses = []
    result = run(plan("a | retry 1", "b: a"), Actions(a=[flaky("one"), flaky("two"), None]), pause=lambda *args: pauses.append(args))
    assert len(pauses) == 1, "no pause after the last attempt"
    assert render(result) == "a: failed after 2 attempts (two)\nb: skipped\nrun failed: 1 failed, 1 skipped\n"
    assert [item.attempts for item in result.steps] == [2, 0]


def test_retry_only_on_named_kinds():
    actions = Actions(a=[flaky("one"), busy("two"), None], b=[flaky()])
    result = run(plan("a | retry 5 on Flaky, Odd", "b | retry 5 on flaky"), actions)
    assert actions.log == ["a", "a", "b"]
    assert render(result) == "a: failed after 2 attempts (two)\nb: failed (flaky)\nrun failed: 2 failed\n"


def test_optional():
    actions = Actions(a=[flaky("x"), flaky("y")])
    result = run(plan("a | optional | retry 1", "b: a", "c: b, a"), actions)
    assert actions.log == ["a", "a", "b", "c"]
    assert result.ok and result.steps[0].error.args == ("y",)
    assert render(result) == "a: tolerated after 2 attempts (y)\nb: ok\nc: ok\nrun ok: 2 ok, 1 tolerated\n"


def test_skipped_optional_step_is_not_tolerated():
    result = run(plan("a", "b: a | optional", "c: b"), Actions(a=[flaky()]))
    assert statuses(result) == {"a": "failed", "b": "skipped", "c": "skipped"}
    assert not result.ok


def test_cleanup_runs_last_in_reverse_order():
    actions = Actions()
    result = run(plan("wipe: a | cleanup", "a", "sweep: a, b | cleanup", "b: a", "shut: sweep, wipe | cleanup", "air: b | cleanup"), actions)
    assert actions.log == ["a", "b", "air", "sweep", "wipe", "shut"]
    assert [item.step.name for item in result.steps] == ["wipe", "a", "sweep", "b", "shut", "air"]


def test_cleanup_readiness_is_reconsidered_after_each_step():
    actions = Actions()
    run(plan("a", "k1: a | cleanup", "k2: k3 | cleanup", "k3: a | cleanup"), actions)
    assert actions.log == ["a", "k3", "k2", "k1"]


def test_cleanup_runs_after_failure_if_something_started():
    actions = Actions(a=[flaky()])
    result = run(plan("a", "b: a", "ka: a | cleanup", "kb: b | cleanup", "kab: b, a | cleanup", "kk: kb | cleanup", "kka: kab | cleanup"), actions)
    assert actions.log == ["a", "kab", "kka", "ka"]
    assert statuses(result) == {
        "a": "failed", "b": "skipped", "ka": "ok", "kb": "skipped", "kab": "ok", "kk": "skipped", "kka": "ok",
    }


def test_failing_cleanup():
    actions = Actions(k2=[flaky("stuck"), busy("stuck again")], k3=[busy()])
    result = run(plan("a", "k1: k2 | cleanup", "k2: a | cleanup | retry 1", "k3: a | cleanup | optional"), actions)
    assert actions.log == ["a", "k3", "k2", "k2", "k1"]
    assert not result.ok
    assert render(result) == (
        "a: ok\nk1: ok\nk2: failed after 2 attempts (stuck again)\nk3: tolerated (busy)\n"
        "run failed: 2 ok, 1 tolerated, 1 failed\n"
    )


def test_optional_cleanup_alone_keeps_run_ok():
    assert run(plan("a", "k: a | cleanup | optional"), Actions(k=[flaky()])).ok


def test_skipped_cleanup_does_not_fail_the_run():
    result = run(plan("a | optional", "k: a | cleanup"), Actions(a=[flaky()]))
    assert result.ok and statuses(result) == {"a": "tolerated", "k": "ok"}


@pytest.mark.parametrize("crash", [RuntimeError("x"), KeyboardInterrupt(), SystemExit(3)], ids=["error", "interrupt", "exit"])
def test_crash_still_cleans_up(crash):
    actions = Actions(b=[crash])
    with pytest.raises(type(crash)) as info:
        run(plan("a", "b: a | retry 3 | optional", "c", "ka: a | cleanup", "kb: b | cleanup", "kc: c | cleanup"), actions)
    assert info.value is crash
    assert actions.log == ["a", "b", "kb", "ka"]


def test_crash_in_a_later_attempt():
    actions = Actions(a=[flaky(), ValueError("x"), None])
    with pytest.raises(ValueError):
        run(plan("a | retry 5", "k: a | cleanup"), actions)
    assert actions.log == ["a", "a", "k"]


def test_first_crash_wins_and_all_cleanups_run():
    first, second = OSError("first"), KeyError("second")
    actions = Actions(a=[first], k3=[second], k2=[flaky()])
    with pytest.raises(OSError) as info:
        run(plan("a", "k1: a | cleanup", "k2: a | cleanup", "k3: a | cleanup", "k4: k3 | cleanup"), actions)
    assert info.value is first
    assert actions.log == ["a", "k3", "k4", "k2", "k1"]


def test_crash_in_cleanup_only():
    crash = OSError("late")
    actions = Actions(k2=[crash])
    with pytest.raises(OSError) as info:
        run(plan("a", "k1: a | cleanup", "k2: a | cleanup"), actions)
    assert info.value is crash and actions.log == ["a", "k2", "k1"]


@pytest.mark.parametrize("crash", [InterruptedError(), StepError("Flaky", "in pause")], ids=["other", "step-error"])
def test_crashing_pause(crash):
    def pause(step, attempt):
        raise crash

    actions = Actions(a=[flaky()])
    with pytest.raises(type(crash)) as info:
        run(plan("a | retry 1", "b", "k: a | cleanup"), actions, pause=pause)
    assert info.value is crash
    assert actions.log == ["a", "k"]
