"""Examples on pages, executed."""

import re


def printed(page, capsys):
    """What the page's Python prints, block after block; the page, and the names its code made."""
    text = page.read_text()
    names: dict = {}  # later blocks go on from the first
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        assert len(block.strip().splitlines()) <= 15
        exec(compile(block, page.name, "exec"), names)
    return capsys.readouterr().out, text, names
