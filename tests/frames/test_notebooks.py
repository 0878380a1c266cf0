"""The notebooks run from top to bottom, and the tutorial's page shows the code of its notebook."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    ran = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in ran.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_the_page_has_the_notebook_s_code_in_25_lines():
    page = (ROOT / "docs" / "tutorials" / "next-24-hours.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= 25
    cells = nbformat.read(ROOT / "examples" / "notebooks" / "next-24-hours.ipynb", as_version=4).cells
    shown = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert all(line in shown for line in lines)
