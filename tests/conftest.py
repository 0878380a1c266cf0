"""What holds for all tests."""

import pytest

# Their assertions tell what they compared, as those of tests do.
pytest.register_assert_rewrite("crew", "hub_process", "masked_teams", "networks", "nursery", "paging", "served")


def pytest_ignore_collect(collection_path):
    """Helpers are not looked through for examples: some compile when they are imported, for processes to be forked."""
    return True if collection_path.suffix == ".py" and not collection_path.name.startswith("test_") else None
