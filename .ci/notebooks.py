"""Execute every notebook in a kernel of this environment; a cell that raises fails."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

found = sorted(Path("notebooks").glob("*.ipynb"))
for path in found:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": "notebooks"}}
    ).execute()
    print(f"{path}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells")
sys.exit(not found)
