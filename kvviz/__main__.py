"""``python -m kvviz``: the command line."""

import sys

if __name__ == "__main__":
    try:
        from kvviz.cli.main import main

        sys.exit(main())
    except KeyboardInterrupt:  # also while the commands are still being imported
        sys.exit(130)
