"""``python -m kvviz.ui.shell.serve``: start the app, with the first figures computed before the first visitor asks.

The server and its pages live in one process, so what is computed here is there when a page opens.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from streamlit.web import cli

from kvviz.ui.shell.disk_results import KEEP_RESULTS

APP = Path(__file__).parents[3] / "app.py"
BROWSER_SECONDS = 4.0  # within which a browser that was waiting for the server asks for its page
CURE = "choose another one, as in `make run PORT=9000`"


def main() -> int:
    """Warm up, then hand over to ``streamlit run`` with whatever options were given; 2 after a sentence about them."""
    try:
        check_port(sys.argv[1:])
    except ValueError as error:
        print(f"kvviz: {error}", file=sys.stderr)
        return 2
    os.environ.setdefault(KEEP_RESULTS, "1")
    threading.Thread(target=warm_quietly, daemon=True).start()
    sys.argv = ["streamlit", "run", str(APP), *sys.argv[1:]]
    cli.main(prog_name="streamlit")
    return 0


def check_port(arguments: Sequence[str]) -> None:
    """Refuse a port that cannot be opened, in one sentence where streamlit has a usage block or a traceback.

    Without a port streamlit looks for a free one by itself. ValueError names the port and the cure.
    """
    word = option(arguments, "--server.port")
    if word is None:
        return
    if not (word.isascii() and word.isdigit() and len(word) <= 5 and 0 < int(word) < 2**16):
        raise ValueError(f"The port {word!r} is not a whole number from 1 to 65535; {CURE}.")
    check_free(option(arguments, "--server.address") or "", int(word))


def check_free(address: str, port: int) -> None:
    """Open the port for a moment; ValueError if somebody else has it, or it may not be opened."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        if os.name != "nt":  # a port left a minute ago is free; on Windows this option would allow to share one
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise ValueError(f"The port {port} is in use by another program; stop that, or {CURE}.") from error
            raise ValueError(f"The port {port} cannot be opened ({error.strerror}); {CURE}.") from error


def option(arguments: Sequence[str], name: str) -> str | None:
    """The last value given to an option, as ``--name value`` or ``--name=value``; None if there is none."""
    found = None
    for place, word in enumerate(arguments):
        if word == name:
            found = "".join(arguments[place + 1 : place + 2])
        elif word.startswith(name + "="):
            found = word.partition("=")[2]
    return found


def warm_quietly() -> None:
    """A failure here is shown by the page itself, in a sentence; the server starts all the same."""
    try:
        # imported here, beside the server and not before it: the port answers while torch and the model load
        from kvviz.ui.shell import imports, page

        imports.SETTINGS_SENT.wait(BROWSER_SECONDS)
        page.warm()
    except Exception as error:
        print(f"kvviz: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
