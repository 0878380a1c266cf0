"""Docstrings as Markdown for the API reference: arguments as a list, examples as code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection

_ENTRY = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*): +")


def as_markdown(text: str, names: Collection[str]) -> str:
    """A docstring with a list item for each argument in `names`, and its doctests in fences."""
    blocks = re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n"))
    return "\n\n".join(_block(block, names) for block in blocks)


def _block(block: str, names: Collection[str]) -> str:
    if block.lstrip().startswith(">>>"):
        return f"```pycon\n{textwrap.dedent(block)}\n```"
    lines, before = [], []
    for line in re.sub(r"(?<=\S) {3,}(?=\S)", "\n", block).split("\n"):
        entry = _ENTRY.match(line.strip())
        if entry and set(entry[1].split(", ")) <= set(names):
            marked = ", ".join(f"`{name}`" for name in entry[1].split(", "))
            lines.append(f"- {marked}: {line.strip()[entry.end() :]}")
        elif lines:
            lines[-1] += " " + line.strip()
        else:
            before.append(line)
    if not lines:
        return block
    return "\n".join([*before, *([""] if before else []), *lines])


try:
    from griffe import Extension
except ModuleNotFoundError:  # the site's packages are not installed: the function above is tested without them
    pass
else:

    class PlainDocstrings(Extension):
        """Rewrites every docstring once it is loaded."""

        def on_object(self, *, obj, **_) -> None:
            if obj.docstring is None:
                return
            names = {each.name for each in getattr(obj, "parameters", ())} | set(getattr(obj, "members", ()))
            init = getattr(obj, "members", {}).get("__init__")
            if init is not None:
                names |= {each.name for each in getattr(init, "parameters", ())}
            obj.docstring.value = as_markdown(obj.docstring.value, names)
