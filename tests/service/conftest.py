"""One service for the tests that only ask and are refused."""

import pytest

from nashcast.service.http.access.tokens import TokenFile
from support.browsing import launched
from support.service.asking import SCOPES
from support.service.served import FILE, Served

WIDE = FILE.replace("x_dim = 1", "x_dim = 2").replace("y_dim = 1", "y_dim = 2")


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    tokens = TokenFile(folder / "journal" / "tokens.json")
    secrets = {name: tokens.add(name, scope.split(",")) for name, scope in SCOPES.items()}
    secrets["expired"] = tokens.add("expired", ["admin"], days=1e-9)
    secrets["revoked"] = tokens.add("revoked", ["admin"])
    tokens.revoke("revoked")
    with Served(folder, "--max-body", "20000", tokens=True, text=WIDE) as running:
        running.secrets = secrets
        with running.client(secrets["writer"]) as client:
            client.observe([1.0, 2.0], [3.0, 4.0], step=0)
        yield running


# For one module at a time: its driver runs an event loop in this thread, which others need for theirs.
@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser
