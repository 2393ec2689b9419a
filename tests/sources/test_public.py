"""Public sets, loaded as a user names them."""

from codeenv.sources import load_tasks


def test_humaneval_from_its_package():
    tasks = load_tasks("humaneval")
    assert len(tasks) == 164
    first = tasks[0]
    assert (first.id, first.family, first.grader.kind) == ("HumanEval/0", "function", "functions")
    assert first.answer is not None
    assert first.answer.entry_point == "has_close_elements"
