"""``python -m kvviz.ui.serve``: start the app, with the first picture computed before the first visitor asks.

The server and its pages live in one process, so what is computed here is there when a page opens.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from streamlit.web import cli

APP = Path(__file__).parent.parent.parent / "app.py"


def main() -> None:
    """Warm up, then hand over to ``streamlit run`` with whatever options were given."""
    threading.Thread(target=warm_quietly, daemon=True).start()
    sys.argv = ["streamlit", "run", str(APP), *sys.argv[1:]]
    cli.main(prog_name="streamlit")


def warm_quietly() -> None:
    """A failure here is shown by the page itself, in a sentence; the server starts all the same."""
    try:
        # imported here, beside the server and not before it: the port answers while torch and the model load
        from kvviz.ui.page import warm

        warm()
    except Exception as error:
        print(f"kvviz: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
