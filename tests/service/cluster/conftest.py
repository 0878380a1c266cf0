"""One broker for the tests that need no cluster of them."""

import pytest

from support.service.clustering import Brokers


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    brokers = Brokers(tmp_path_factory.mktemp("broker"))
    try:
        brokers.wait()
        yield brokers
    finally:
        brokers.close()
