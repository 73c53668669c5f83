"""Results that survive a restart: kept in the cache folder, bounded in size, shared by all processes of one user.

An entry is found by what it depends on: the experiment, the model's weights, kvviz's own code and the versions of the
libraries that compute. It is read without torch, so a second start shows its first figure before torch is there. What
is damaged, or was written by anything else, is computed anew.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import logging
import os
import pickle
import platform
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import diskcache

from kvviz import __version__
from kvviz.choices.experiment import Experiment
from kvviz.models import MODELS
from kvviz.models.store import MANIFEST, cache_folder

KEEP_RESULTS = "KVVIZ_KEEP_RESULTS"  # 1 where results outlive the process; set by whoever serves the app
BYTES_LIMIT = 512 * 2**20  # of all entries; those unused longest go first
WAIT_SECONDS = 2.0
ENTRY_LIMIT = 32 * 2**20  # a trace with maps is 12 MB at 512 tokens, and 160 MB at 2,048
COMPUTING = ("torch", "transformers", "numpy")
DIGEST = 32
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stamp:
    """When and for whom a result was computed."""

    seconds: float  # since the epoch
    is_setup: bool  # before the first visitor asked
    place: str  # number format and device, such as "float32 on cpu"
    machine: str  # its name in the network

    @property
    def is_here(self) -> bool:
        """Whether it was this machine; a folder may be shared."""
        return self.machine == platform.node()


class DiskResults:
    """What was computed before, by key; every trouble with the disk is a miss and a line in the log."""

    def __init__(self, folder: Path, place_of: Callable[[str], str | None]) -> None:
        """``place_of`` a model says in which number format and where it runs; None while nobody knows."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder, self.place_of = folder, place_of
        clear_if_damaged(folder)
        # a page waits no longer than this for another process that writes; the answer is then a miss
        wait: dict[str, Any] = {"timeout": WAIT_SECONDS, "eviction_policy": "least-recently-used"}
        self.entries = diskcache.Cache(str(folder), size_limit=BYTES_LIMIT, **wait)

    def get(self, key: tuple[Any, ...]) -> tuple[Any, Stamp] | None:
        """The result and its stamp; None where there is none, or none that is whole and computed as it would be now."""
        try:
            name = address(key) if may_be_kept(key) else None
            entry = None if name is None else self.entries.get(name)
            if name is None or entry is None:
                return None
            result, stamp = unpacked(entry, name)
        except Exception as error:
            log.warning("A kept result could not be read (%s) and is computed anew.", error)
            return None
        return (result, stamp) if self.place_of(model_in(key)) in (None, stamp.place) else None

    def put(self, key: tuple[Any, ...], result: Any, *, is_setup: bool) -> None:
        """Keep a result unless it is too large or cannot be written."""
        place = self.place_of(model_in(key))
        if place is None or not may_be_kept(key):
            return
        try:
            name = address(key)
            entry = packed(result, Stamp(time.time(), is_setup, place, platform.node()), name)
            if len(entry) <= ENTRY_LIMIT:
                self.entries.set(name, entry)
        except Exception as error:
            log.warning("A result could not be kept (%s).", error)


def clear_if_damaged(folder: Path) -> None:
    """Empty the folder where its database is none any more, or nothing would ever be kept in it again."""
    if not (folder / diskcache.core.DBNAME).exists():
        return
    try:
        with closing(sqlite3.connect(folder / diskcache.core.DBNAME)) as database:
            is_sound = database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError:  # another process is busy with it
        return
    except sqlite3.DatabaseError:
        is_sound = False
    if not is_sound:
        log.warning("The kept results in %s are damaged and are thrown away.", folder)
        shutil.rmtree(folder)
        folder.mkdir(mode=0o700)


def opened(place_of: Callable[[str], str | None]) -> DiskResults | None:
    """The results of this user, where the server keeps them; None where it does not, or the folder cannot be used."""
    if os.environ.get(KEEP_RESULTS) != "1":
        return None
    try:
        return DiskResults(cache_folder() / "results", place_of)
    except Exception as error:  # a read-only disk, another user's folder: the app works without
        log.warning("Results are not kept on disk (%s).", error)
        return None


def packed(result: Any, stamp: Stamp, name: str) -> bytes:
    """An entry with its check, which holds under this name alone: a file in another one's place is another figure."""
    payload = pickle.dumps((result, stamp), protocol=5)
    return digest_of(payload, name) + payload


def digest_of(payload: bytes, name: str) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + payload).digest()


def unpacked(entry: bytes, name: str) -> tuple[Any, Stamp]:
    """The result of an entry; ValueError if a bit of it or its name has changed, UnpicklingError for foreign code."""
    digest, payload = entry[:DIGEST], entry[DIGEST:]
    if digest_of(payload, name) != digest:
        raise ValueError("its bytes have changed")
    result, stamp = OwnTypes(io.BytesIO(payload)).load()
    return result, stamp


class OwnTypes(pickle.Unpickler):
    """Reads kvviz's own types and numpy's arrays, and nothing that could run other code."""

    ARRAYS = frozenset({"_reconstruct", "_frombuffer", "scalar", "ndarray", "dtype"})
    PLAIN = frozenset({"complex", "set", "frozenset", "bytearray", "slice", "range", "mappingproxy"})

    def find_class(self, module: str, name: str) -> Any:
        room = module.partition(".")[0]
        is_allowed = (room == "numpy" and name in self.ARRAYS) or (module == "builtins" and name in self.PLAIN)
        if not is_allowed and (room != "kvviz" or "." in name):
            raise pickle.UnpicklingError(f"{module}.{name} is no type of kvviz")
        found = super().find_class(module, name)
        if room == "kvviz" and not (isinstance(found, type) and found.__module__.startswith("kvviz.")):
            raise pickle.UnpicklingError(f"{module}.{name} is no type of kvviz")
        return found


def model_in(key: tuple[Any, ...]) -> str:
    """The model a result belongs to: a run's experiment comes first in its key, else a word and then the model."""
    first = next((part for part in key[:2] if isinstance(part, Experiment)), None)
    return first.model if first else str(key[1])


def may_be_kept(key: tuple[Any, ...]) -> bool:
    """Only results of models whose files are checked at loading: of another nothing tells whether it has changed."""
    return model_in(key) in MODELS


def address(key: tuple[Any, ...]) -> str:
    """A name for all that the result depends on."""
    models = [name for name in MODELS if name == model_in(key) or name in key]
    words = json.dumps([repr(key), *map(weights_of, models), code(), versions()])
    return hashlib.sha256(words.encode()).hexdigest()


def weights_of(model: str) -> str:
    """The hashes of the model's files as its folder lists them, so that other weights have other entries."""
    manifest = json.loads((cache_folder() / model / MANIFEST).read_text("utf-8"))
    return json.dumps(manifest["files"], sort_keys=True)


@cache
def code() -> str:
    """A hash of kvviz's own source: a change anywhere in it may change a number."""
    root = Path(__file__).parents[2]
    found = hashlib.sha256(__version__.encode())
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@cache
def versions() -> dict[str, str]:
    """The libraries that compute, and the choice of device that comes from outside."""
    found = {name: importlib.metadata.version(name) for name in COMPUTING}
    # Python brings the long text that needles lie in
    return found | {"python": platform.python_version(), "device": os.environ.get("KVVIZ_DEVICE", "")}
