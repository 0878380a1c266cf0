"""The notebooks in examples/notebooks as pages: text, code, and outputs where a notebook has any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def page(notebook: dict[str, Any], name: str) -> str:
    """A notebook as Markdown, with a line after its title that says where the notebook is."""
    parts = [_cell(cell) for cell in notebook["cells"]]
    title, _, rest = parts[0].partition("\n")
    source = f"This page is the notebook [{name}](../../examples/notebooks/{name}); run it to see its output.\n"
    return "\n".join([title, "", source, rest.strip("\n"), "", *parts[1:]])


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source + "\n"
    lines = [f"```python\n{source}\n```\n"]
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        text = "".join(output.get("text", data.get("text/plain", "")))
        if "image/png" in data:
            lines.append(f"![Output of the cell above](data:image/png;base64,{''.join(data['image/png']).strip()})\n")
        elif text:
            lines.append(f"```text\n{text.rstrip()}\n```\n")
    return "\n".join(lines)


def on_files(files, config):
    from mkdocs.structure.files import File

    for path in sorted((Path(config.config_file_path).parent / "examples" / "notebooks").glob("*.ipynb")):
        content = page(json.loads(path.read_text(encoding="utf-8")), path.name)
        files.append(File.generated(config, f"tutorials/notebook-{path.stem}.md", content=content))
    return files
