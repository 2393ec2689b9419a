"""Verdicts beside each other: which test passed where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codeenv.grading.verdict import Verdict
from codeenv.html import styled
from codeenv.record.schema import Judged

MARKS = {True: "+", False: "-", None: " "}


class Verdicts(Mapping[str, Verdict | Judged]):
    """By what they are of, such as `{"turn 3": verdict}`: a column each, and a row a test."""

    def __init__(self, verdicts: Mapping[str, Verdict | Judged]) -> None:
        self._verdicts = dict(verdicts)
        by_label = [{test.id: test.passed for test in verdict.tests} for verdict in self._verdicts.values()]
        names = dict.fromkeys(name for passed in by_label for name in passed)
        self.tests: dict[str, list[bool | None]] = {name: [tests.get(name) for tests in by_label] for name in names}
        """Of each test by its id, whether it passed, in the order of the verdicts; None: it was not run."""

    def __getitem__(self, label: str) -> Verdict | Judged:
        return self._verdicts[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def __repr__(self) -> str:
        """A line a verdict, a character a test."""
        width = max(map(len, self._verdicts), default=0)
        rows = [
            f"{label:{width}}  {''.join(MARKS[passed[place]] for passed in self.tests.values())}  {verdict.outcome}"
            for place, (label, verdict) in enumerate(self._verdicts.items())
        ]
        return "\n".join(rows) or "no verdicts"

    def _repr_html_(self) -> str:
        return styled("verdicts", verdicts=self._verdicts, tests=self.tests)
