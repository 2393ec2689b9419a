"""Execute every notebook in a kernel of this environment and compare its outputs with the committed ones: a cell that
raises fails, and so does an output that is another but for times, ids and counts of tokens.

    python .ci/notebooks.py            # as CI does
    python .ci/notebooks.py --write    # commits-to-be: outputs that are others are replaced
"""

import difflib
import os
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[1] / "notebooks"
TOGETHER = 2
CELL_SECONDS = 300

DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?[\d.]*(?:Z| UTC|[+-]\d\d:\d\d)?")
NAME = re.compile(r"\b[0-9a-f]{12}\b")  # an episode's
MASKS = [
    (re.compile(r"<style>.*?</style>", re.DOTALL), ""),
    (re.compile(r"\b(?=[0-9a-f]*[a-f])[0-9a-f]{8,64}\b|\b0{12}\b"), "ID"),
    (re.compile(r"(?:\d+ h )?\d+ m \d+ s|(?:&lt;|<)?\d+(?:\.\d+)? (?:ms|s)\b"), "TIME"),
    (re.compile(r"\b\d+\.\d\b(?!\.)"), "TIME"),  # a column of seconds
    (re.compile(r"[\d.,]+[kM]? (?:tok|in|out)\b"), "TOKENS"),
    (re.compile(r"\b3\.\d+\.\d+\b"), "PYTHON"),
    (re.compile(r"[ \t]+"), " "),  # columns are as wide as what is in them
]


def masked(text: str) -> str:
    """Without what differs from one run to the next."""
    for pattern, instead in MASKS:
        text = pattern.sub(instead, text)
    return text


def shown(notebook: NotebookNode) -> list[str]:
    """Its sources and outputs, line by line, as they are compared."""
    lines: list[str] = []
    for number, cell in enumerate(notebook.cells, 1):
        lines += [f"cell {number} ({cell.cell_type})", *cell.source.splitlines()]
        for output in cell.get("outputs", ()):
            kinds = output.get("data") or {output.get("name", output.output_type): output.get("text", "")}
            if "text/html" in kinds:
                kinds = {"text/html": kinds["text/html"]}  # of which the plain text is another form
            for kind, text in sorted(kinds.items()):
                lines += [f"cell {number} gives {kind}", *masked(str(text)).splitlines()]
    return [line.rstrip() for line in lines]


def difference(committed: NotebookNode, fresh: NotebookNode, name: str) -> str:
    lines = difflib.unified_diff(shown(committed), shown(fresh), f"{name}, committed", f"{name}, now", "", "", 1, "")
    return "\n".join(lines)


def executed(path: Path) -> NotebookNode:
    """In a copy of its folder, which goes afterwards: it may write where it is."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="notebook-") as home:
        place = Path(shutil.copytree(path.parent, Path(home, path.parent.name)))
        environment = os.environ | {
            "HF_HUB_OFFLINE": "1", "TMPDIR": home, "COLUMNS": "110", "TERM": "dumb",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        client = NotebookClient(
            notebook, timeout=CELL_SECONDS, kernel_name="python3", record_timing=False, coalesce_streams=True,
            resources={"metadata": {"path": str(place)}},
        )  # fmt: skip
        client.execute(env=environment)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                # What goes to standard error is progress, and warnings about this machine.
                outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
                cell.outputs = [_clean(output, place, home) for output in outputs]
                cell.metadata.pop("execution", None)
    notebook.metadata.pop("language_info", None)
    return notebook


def _clean(output: NotebookNode, *paths: object) -> NotebookNode:
    """Without what is of this machine and this day."""
    text = nbformat.v4.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[output])]))
    for path in paths:
        text = text.replace(str(path), ".")
    text = NAME.sub("0" * 12, DATE.sub("DATE", text))
    return nbformat.reads(text, as_version=4).cells[0].outputs[0]


def main() -> int:
    write = "--write" in sys.argv
    found = sorted(FOLDER.glob("*.ipynb"))
    started = time.monotonic()
    stale = 0
    with ThreadPoolExecutor(TOGETHER) as pool:
        for path, fresh in zip(found, pool.map(executed, found), strict=True):
            told = difference(nbformat.read(path, as_version=4), fresh, path.name)
            print(f"{path.name}: {sum(cell.cell_type == 'code' for cell in fresh.cells)} cells", flush=True)
            if told and write:
                nbformat.write(fresh, path)
                print("written")
            elif told:
                stale += 1
                print(f"{told}\n{path.name}: its outputs are others now; python .ci/notebooks.py --write replaces them")
    print(f"{len(found)} notebooks in {time.monotonic() - started:.0f} s")
    return 1 if stale or not found else 0


if __name__ == "__main__":
    sys.exit(main())
