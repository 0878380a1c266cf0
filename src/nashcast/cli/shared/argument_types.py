"""Types of arguments that several commands take."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; pass a whole number ≥ 1")
    return int(text)


def seeds(text: str) -> tuple[int, ...]:
    """Whole numbers and ranges of them."""
    found: list[int] = []
    for part in filter(str.strip, text.split(",")):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise argparse.ArgumentTypeError(f"got {text!r}; pass whole numbers or ranges, such as 2024,2030-2049")
        found += range(int(first), int(last or first) + 1)
    if not found or max(found) >= 2**32:
        raise argparse.ArgumentTypeError(f"got {text!r}; pass whole numbers from 0 on, below 2^32")
    return tuple(dict.fromkeys(found))
