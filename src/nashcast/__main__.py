"""`python -m nashcast` is the `nashcast` command."""

import sys

from nashcast.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
