"""Colours on a terminal; plain text elsewhere."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

BOLD, RED, CYAN = "1", "31", "36"


def coloured(stream: TextIO) -> bool:
    """Whether the stream takes escape codes: it is a terminal, and the environment does not switch them off.

    A non-empty NO_COLOR and TERM=dumb switch colours off.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def paint(text: str, code: str, stream: TextIO | None = None) -> str:
    """The text in a colour if the stream (default: standard output) shows colours, else unchanged."""
    return f"\x1b[{code}m{text}\x1b[0m" if coloured(stream or sys.stdout) else text


def title(page: str) -> str:
    """A page for standard output with its first non-empty line in bold."""
    return re.sub(r"\S[^\n]*", lambda found: paint(found[0], BOLD), page, count=1)


def help_page(text: str, stream: TextIO) -> str:
    """The help of argparse with bold headings and cyan options."""
    if not coloured(stream):
        return text
    text = re.sub(r"^(usage|\w[^\n]*(?=:\n)):", lambda found: paint(found[0], BOLD, stream), text, flags=re.M)
    options = r"^( {2,4})(-[^\s,]+(?:, --[^\s,]+)?)"
    return re.sub(options, lambda found: found[1] + paint(found[2], CYAN, stream), text, flags=re.M)
