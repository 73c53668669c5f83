"""Checked files and plain sentences for what can go wrong with them."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvviz.models.table import ModelCard, ModelError

_FULL = {errno.ENOSPC, errno.EDQUOT}


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex (about 0.3 s for 500 MB)."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def flush_folder(folder: Path) -> None:
    """Push a folder's files to the disk, so that a rename never outlives their content."""
    for path in [*folder.iterdir(), folder]:
        if path.is_dir() and os.name == "nt":  # Windows cannot open a folder
            continue
        handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def share_folder(folder: Path) -> None:
    """Let those read a folder whom the user's umask lets: safetensors writes for its owner alone."""
    umask = os.umask(0)
    os.umask(umask)
    for path in folder.iterdir():
        path.chmod(0o666 & ~umask)


def disk_full(card: ModelCard, folder: Path) -> ModelError:
    """Return the error for a full disk."""
    size = f"{card.disk_bytes / 1e9:.1f} GB" if card.disk_bytes else "more room"
    return ModelError(
        f"The disk is full: {card.name} needs {size} in {folder}; "
        "free some space there, or point KVVIZ_CACHE at another folder."
    )


def is_disk_full(error: BaseException) -> bool:
    """Tell whether an error means a full disk; safetensors reports it as text only."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    text = str(error)
    return any(f"os error {code}" in text for code in _FULL) or "No space left on device" in text


@contextmanager
def plain_errors(card: ModelCard, folder: Path) -> Iterator[None]:
    """Turn whatever goes wrong while ``folder`` is filled into one sentence.

    Raises:
        ModelError: the disk is full, ``folder`` cannot be written, or the model cannot be prepared.
    """
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # torch, safetensors and the file system each bring their own errors
        if is_disk_full(error):
            raise disk_full(card, folder) from error
        if isinstance(error, OSError) and error.errno:
            raise ModelError(
                f"The folder {folder} cannot be used for models ({os.strerror(error.errno)}); "
                "allow writing there, or point KVVIZ_CACHE at another folder."
            ) from error
        raise ModelError(
            f"{card.name} could not be prepared ({first_line(error)}); delete {folder} and start again."
        ) from error


def first_line(error: BaseException) -> str:
    """Return an error's first line without its full stop, or its kind if it says nothing."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")
