"""Links from a page to files outside docs/ lead to the repository, and those to a notebook to its page.

A link to a missing file is an error.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def rewritten(markdown: str, page: str, root: Path, repository: str) -> str:
    """The page's text with links that leave docs/ as addresses of the repository.

    page: its path below docs/.   root: the checkout.   repository: its address.
    """

    def address(found: re.Match) -> str:
        target = found[2]
        if "://" in target or target.startswith(("mailto:", "/")):
            return found[0]
        parts: list[str] = []
        for part in (PurePosixPath("docs", page).parent / target).parts:
            if part == "..":
                parts.pop()
            else:
                parts.append(part)
        if parts[0] == "docs":
            return found[0]
        path = root.joinpath(*parts)
        if not path.exists():
            raise FileNotFoundError(f"{page} links to {target}, but there is no {'/'.join(parts)}")
        if path.suffix == ".ipynb" and not page.startswith("tutorials/notebook-"):
            up = "../" * (len(PurePosixPath(page).parts) - 1)
            return f"{found[1]}{up}tutorials/notebook-{path.stem}.md{found[3]}"
        kind = "tree" if path.is_dir() else "blob"
        return f"{found[1]}{repository}/{kind}/main/{'/'.join(parts)}{found[3]}"

    return _LINK.sub(address, markdown)


def on_page_markdown(markdown, page, config, files):
    root = Path(config.config_file_path).parent
    return rewritten(markdown, page.file.src_uri, root, config.repo_url.rstrip("/"))
