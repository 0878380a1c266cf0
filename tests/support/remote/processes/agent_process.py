"""One agent in a process of its own. Importing this makes ready what agents need: processes that are forked have it."""

import importlib
import logging
import os
from pathlib import Path

from nashcast.cli.elsewhere.agent import _Log
from nashcast.remote.owner.runner import serve_agent
from nashcast.remote.owner.warm_up import warm_up

warm_up()


def serve(function, arguments, index, hub, key, certs, state, log, errors, trusted=None):
    """function: MODULE:NAME, which gives agents.   log: of what is sent.   errors: the file for stderr."""
    with Path(errors).open("wb") as file:
        os.dup2(file.fileno(), 2)
    logging.basicConfig(level="INFO", force=True)
    module, name = function.split(":")
    agent = getattr(importlib.import_module(module), name)(*arguments)[index]
    with _Log(log) as sent:
        serve_agent(agent, hub, key=key, certs=certs, state=state, sent=sent, trusted=trusted)
