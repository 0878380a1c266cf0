"""What holds for all tests."""

import pytest

# Assertions of the helpers tell what they compared, as those of tests do.
pytest.register_assert_rewrite("support")


def pytest_ignore_collect(collection_path):
    """Helpers are not looked through for examples: some compile when they are imported, for processes to be forked."""
    return True if collection_path.suffix == ".py" and not collection_path.name.startswith("test_") else None
