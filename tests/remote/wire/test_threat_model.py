"""The page on who sees what names the tests that try it, and every attack that is tried stands on it."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "explanation" / "threat-model.md"
ATTACKS = ("test_active_hub.py", "test_active_joint_hub.py")


def names_in(file):
    tree = ast.parse((HERE / file).read_text())
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def test_the_table_of_attacks_is_that_of_the_tests():
    lines = re.findall(r"^\|.*\| `(test_\w+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert lines == [name for file in ATTACKS for name in names_in(file)]


def test_every_file_of_tests_that_the_page_names_is_there():
    named = re.findall(r"`(?:tests/remote/\w+/)?(test_\w+\.py)`", PAGE.read_text())
    assert named
    assert [name for name in named if not list(HERE.parent.rglob(name))] == []
