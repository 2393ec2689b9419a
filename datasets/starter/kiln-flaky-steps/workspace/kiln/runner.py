"""Running plans."""

from kiln.model import Result, StepError, StepResult


def run(plan, actions):
    """Run the steps of the plan; `actions` maps action names to functions without arguments.

    Of the steps that are ready the one declared first runs. A step whose action raises StepError has failed; a step that
    needs a failed or skipped step is skipped. Other exceptions go to the caller at once.
    """
    results = {}
    while len(results) < len(plan.steps):
        step = next(
            step for step in plan.steps if step.name not in results and all(name in results for name in step.needs)
        )
        if all(results[name].status == "ok" for name in step.needs):
            results[step.name] = _run_step(step, actions)
        else:
            results[step.name] = StepResult(step, "skipped")
    return Result(tuple(results[step.name] for step in plan.steps))


def _run_step(step, actions):
    try:
        actions[step.action]()
    except StepError as error:
        return StepResult(step, "failed", error)
    return StepResult(step, "ok")
