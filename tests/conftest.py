"""What holds for all tests."""

from pathlib import Path

import pytest

# Assertions of the helpers tell what they compared, as those of tests do.
_FILES = Path(__file__).parent.rglob("*.py")
pytest.register_assert_rewrite(*{path.stem for path in _FILES if not path.stem.startswith(("test_", "conf", "__"))})


def pytest_ignore_collect(collection_path):
    """Helpers are not looked through for examples: some compile when they are imported, for processes to be forked."""
    return True if collection_path.suffix == ".py" and not collection_path.name.startswith("test_") else None
