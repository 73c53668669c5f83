"""``python -m kvviz``: the command line."""

import sys

from kvviz.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
