"""Schemathesis over the OpenAPI document of a real process: no 5xx, no answer that the document does not name.

NASHCAST_EXAMPLES=200 for a long run.
"""

import os
import re
import subprocess
import sys

import pytest

from nashcast.service.http.access.tokens import TokenFile
from support.service.served import FILE, Served

EXAMPLES = os.environ.get("NASHCAST_EXAMPLES", "8")


@pytest.mark.slow
def test_every_answer_is_documented(tmp_path):
    pytest.importorskip("schemathesis")
    secret = TokenFile(tmp_path / "journal" / "tokens.json").add("tester", ["admin"])
    text = FILE.replace("y_dim = 1", "y_dim = 2")
    with Served(tmp_path, "--rate", "100000", "--max-body", "100000000", tokens=True, text=text) as served:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/v1/openapi.json", "--no-color"]
        # The event stream does not end, so its one answer is tested elsewhere.
        command += ["--exclude-path", "/v1/streams/{stream}/events", "-n", EXAMPLES, "--seed", "1"]
        # Sizes of inputs and targets are each stream's own, so a document for all of them cannot say them.
        command += ["--exclude-checks", "positive_data_acceptance"]
        command += ["--phases", "coverage,fuzzing,stateful", "--header", f"Authorization: Bearer {secret}"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        generated = re.search(r"(\d+) generated", done.stdout)
        assert generated is not None
        assert int(generated[1]) > 200
        with served.client(secret) as client:
            assert client.status()["state"] == "live"
        assert "failed" not in served.log()
