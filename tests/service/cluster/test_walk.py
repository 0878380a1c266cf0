"""The walk of docs/how-to/spread-over-machines.md, walked."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nashcast.remote.broker.running.program import server_program
from support.service.clustering import free_ports

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "spread-over-machines.md").read_text()
PORTS = ("6222", "6223", "6224", "4222", "4223", "4224", "8500", "8501", "8502")


@pytest.mark.slow
def test_the_walk_does_what_it_says(tmp_path):
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.partition("<!-- walk")[2], flags=re.S)
    assert len(blocks) == 4
    walk = "".join(blocks).replace("nats-server ", f"{server_program()} ")
    walk = walk.replace("nashcast serve", f"{sys.executable} -m nashcast serve")
    for i in "234":  # the loop over brokers names ports by their last digit
        assert f"422{i}" in PORTS
    ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
    walk = walk.replace("--port 422$i", "--port ${CLIENT[$i]}").replace("127.0.0.1:622$i", "127.0.0.1:${ROUTE[$i]}")
    for before, after in ports.items():
        walk = walk.replace(f"127.0.0.1:{before}", f"127.0.0.1:{after}").replace(f"--port {before}", f"--port {after}")
    head = f"CLIENT=(0 0 {ports['4222']} {ports['4223']} {ports['4224']})\n"
    head += f"ROUTE=(0 0 {ports['6222']} {ports['6223']} {ports['6224']})\n"
    command = ["bash", "-euo", "pipefail", "-c", head + walk]
    with (tmp_path / "log").open("w") as log:
        walking = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=tmp_path, start_new_session=True
        )
        try:
            lines = []
            for line in walking.stdout:
                lines.append(line.strip())
                if len([each for each in lines if each.startswith("{")]) == 8:
                    break
            assert walking.wait(60) == 0, (tmp_path / "log").read_text()
        finally:
            os.killpg(walking.pid, signal.SIGKILL)
            walking.stdout.close()
    answers = [line for line in lines if line.startswith("{")]
    assert answers[0].startswith('{"name":"load"')
    receipts = [re.match(r'\{"first":(\d),"last":\d,"accepted":(\d),"duplicates":(\d)', line) for line in answers[1:]]
    found = [receipt.groups() for receipt in receipts if receipt]
    assert found == [("0", "1", "0"), ("1", "1", "0"), ("0", "0", "1"), ("0", "1", "0"), ("0", "1", "0")]
    assert answers[3].startswith('{"step":2,')
    assert answers[-1] == answers[3]  # of the machine that took over: the same, to the bit
