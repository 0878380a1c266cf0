"""`nashcast bridge FILE`: pass observations from NATS and MQTT to a service, and its forecasts back."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from nashcast.cli.shared.printed import print_json


def add_to(commands) -> None:
    bridge = commands.add_parser(
        "bridge",
        help="connect a service to NATS and MQTT",
        description="Post messages from NATS subjects and MQTT topics to streams of a service, once each, and "
        "publish the streams' forecasts to subjects and topics.",
    )
    bridge.add_argument("file", metavar="FILE", type=Path, help="TOML file of servers, subjects and topics")
    bridge.add_argument(
        "--log-format", choices=("text", "json"), default="text",
        help="format of the log on standard error (default: %(default)s)",
    )  # fmt: skip
    bridge.add_argument("--json", action="store_true", help="print one JSON object when connected and one at the end")
    bridge.set_defaults(run=main)


def main(chosen: argparse.Namespace) -> None:
    from nashcast.service.bridge.bridge import Bridge
    from nashcast.service.bridge.settings import read_bridge
    from nashcast.service.events.json_log import set_up_log

    set_up_log(chosen.log_format)
    settings = read_bridge(chosen.file)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with Bridge(settings) as bridge:
        inputs, outputs = len(settings.inputs), len(settings.outputs)
        if chosen.json:
            print_json({"service": settings.service.url, "inputs": inputs, "outputs": outputs})
        else:
            print(f"bridging {inputs} inputs and {outputs} outputs of {settings.service.url}; stop with Ctrl-C")
        sys.stdout.flush()
        ending.wait()
    counts = bridge.counts()
    if chosen.json:
        print_json(counts)
    else:
        print(", ".join(f"{name} {count}" for name, count in counts.items()))
