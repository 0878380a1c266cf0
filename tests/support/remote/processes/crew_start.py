"""What every process that the tests fork has behind it: all of nashcast imported, and compiled."""

import nats
import nats.js  # noqa: F401

from nashcast.remote.owner.warm_up import warm_up
from support.remote.processes.crew_processes import die_with_parent

# The server that forks them would live as long as one of them does.
die_with_parent()
warm_up()
