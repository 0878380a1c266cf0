"""The numbered decisions: their entries in the navigation, and an index of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_HEAD = """# Decisions

Choices that shaped the design, one page each: what was decided, why, and what it costs.

| number | decision | replaced by |
|---:|---|---|
"""
_REPLACED = re.compile(r"^Replaced( in part)? by \[(?:decision )?(\d+)\]\(([^)]+)\)", re.M)


class Decision(NamedTuple):
    """One page. replaced: a link to the later decision, or nothing."""

    file: str
    number: str
    title: str
    replaced: str


def decisions(folder: Path) -> list[Decision]:
    """All of them, in the order of their numbers. The first line of a page is `# NUMBER. TITLE`."""
    found = []
    for path in sorted(folder.glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        first = re.match(r"# (\d+)\. (.+)\n", text)
        if first is None:
            raise ValueError(f"{path.name} begins with {text[:40]!r}. Begin it with '# NUMBER. TITLE'.")
        later = _REPLACED.search(text)
        replaced = "" if later is None else f"[{later[2]}]({later[3]}){' in part' if later[1] else ''}"
        found.append(Decision(path.name, first[1], first[2], replaced))
    return found


def index(found: list[Decision]) -> str:
    """The page that lists all decisions."""
    rows = [f"| {each.number} | [{each.title}]({each.file}) | {each.replaced} |" for each in found]
    return _HEAD + "\n".join(rows) + "\n"


def on_config(config):
    entry = next(part for part in config.nav if "Decisions" in part)
    found = decisions(Path(config.docs_dir) / "decisions")
    pages = [{f"{each.number}. {each.title}": f"decisions/{each.file}"} for each in found]
    entry["Decisions"] = ["decisions/index.md", *pages]
    return config


def on_files(files, config):
    from mkdocs.structure.files import File

    content = index(decisions(Path(config.docs_dir) / "decisions"))
    files.append(File.generated(config, "decisions/index.md", content=content))
    return files
