"""Running plans."""

from kiln.model import Result, StepError, StepResult


def run(plan, actions, pause=None):
    """Run the steps of the plan; `actions` maps action names to functions without arguments.

    Of the steps that are ready the one declared first runs. A step whose action raises StepError in its last attempt has
    failed (or is tolerated, if optional); a step that needs a failed or skipped step is skipped. Then the cleanup steps run,
    the one declared last first. Other exceptions go to the caller after the cleanup. Before each further attempt
    `pause(step, number of the failed attempt)` is called.
    """
    return _Run(plan, actions, pause).run()


class _Run:
    def __init__(self, plan, actions, pause):
        self.plan = plan
        self.actions = actions
        self.pause = pause
        self.results = {}
        self.started = set()
        self.crash = None

    def run(self):
        ordinary = [step for step in self.plan.steps if not step.cleanup]
        while self.crash is None and (step := self._next_ready(ordinary)):
            if all(self.results[name].status in ("ok", "tolerated") for name in step.needs):
                self._run_step(step)
            else:
                self._skip(step)
        for step in ordinary:
            if step.name not in self.results:  # there was a crash
                self._skip(step)
        cleanup = [step for step in reversed(self.plan.steps) if step.cleanup]
        pending = cleanup
        ordered = []
        while pending:
            ready = [s for s in pending if not any(o.name in s.needs for o in pending)]
            ordered += ready
            pending = [s for s in pending if s not in ready]
        for step in ordered:
            if self.started.intersection(step.needs):
                self._run_step(step)
            else:
                self._skip(step)
        if self.crash is not None:
            raise self.crash
        return Result(tuple(self.results[step.name] for step in self.plan.steps))

    def _next_ready(self, steps):
        for step in steps:
            if step.name not in self.results and all(name in self.results for name in step.needs):
                return step
        return None

    def _skip(self, step):
        self.results[step.name] = StepResult(step, "skipped")

    def _run_step(self, step):
        try:
            self.results[step.name] = self._attempt(step)
        except BaseException as error:
            self.results[step.name] = StepResult(step, "failed")
            if self.crash is None:
                self.crash = error

    def _attempt(self, step):
        action = self.actions[step.action]
        self.started.add(step.name)
        attempt = 1
        while True:
            try:
                action()
            except StepError as error:
                if attempt > step.retry or not step.retries_on(error):
                    return StepResult(step, "tolerated" if step.optional else "failed", error, attempt)
            else:
                return StepResult(step, "ok", None, attempt)
            if self.pause is not None:
                self.pause(step, attempt)
            attempt += 1
