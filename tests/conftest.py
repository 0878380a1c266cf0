"""Helpers' assertions tell what they compared, as those of tests do."""

import pytest

pytest.register_assert_rewrite("crew", "hub_process", "masked_teams", "networks", "nursery", "paging", "served")
