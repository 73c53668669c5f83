"""The app in a process of its own, on a free port, for browser tests and for timing pages."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# without a sandbox chromium runs as root, and it must not call home from a closed network
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AS_MAKE_RUN = (sys.executable, "-m", "kvviz.ui.shell.serve")
AS_A_HOST = (sys.executable, "-m", "streamlit", "run", "app.py")
START_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: Sequence[str] = AS_MAKE_RUN) -> Iterator[str]:
    """The address of a server started for the purpose, which answers; it ends with the block."""
    port = free_port()
    options = ("--server.port", str(port), "--server.headless", "true")
    process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(address)
        yield address
    finally:
        process.terminate()
        process.wait(20)


def wait_for(address: str) -> None:
    """Return as soon as the server answers, or after ``START_SECONDS``."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=1).read()
            return
        except OSError:
            time.sleep(0.2)
