"""The Memory page's own controls: which model, how long, how many, in what numbers, on what GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import streamlit as st

from kvviz.choices.setup import Setup
from kvviz.choices.storage import Native
from kvviz.memory import PRESETS, Ask, Shape, preset, read_config
from kvviz.memory.fields import config_words
from kvviz.memory.inverse import weight_bytes
from kvviz.memory.retention import ask_for, doubts
from kvviz.memory.units import GIB
from kvviz.ui.memory.settings import (
    DTYPES,
    MOST_BATCH,
    MOST_PARAMETERS,
    MOST_ROOM,
    MOST_TOKENS,
    OWN,
    MemorySettings,
    fits_a_link,
)
from kvviz.ui.shell.number_fields import still_in_use, whole_number
from kvviz.ui.shell.settings import PASTE, UPLOAD, link_of
from kvviz.ui.shell.state import View, kept_setting, setting
from kvviz.ui.shell.words import choice_words, plain

NAMES = {PASTE: "Paste a config.json", UPLOAD: "Upload a config.json (at most 1 MB)"}


@dataclass(frozen=True)
class Chosen:
    """What is to be counted, for how much memory."""

    shape: Shape  # as the fullest GPU holds it
    tokens: int
    batch: int
    dtype: str
    room_bytes: int
    weights_bytes: int  # on each GPU
    gpus: int
    whole_shape: Shape  # as one GPU would hold it

    @property
    def name(self) -> str:
        return self.shape.name.rpartition("/")[2]

    @property
    def whole(self) -> Ask:
        """Every token kept, in the cache's number format."""
        return Ask(self.tokens, self.batch, self.dtype)

    def under(self, setup: Setup) -> tuple[Ask, str, list[str]]:
        """The same under a side's policy and storage, its words, and what they leave out."""
        storage, notes = setup.storage, doubts(setup.policy, setup.storage, self.shape)
        if storage.needs_heads and any(group.is_latent for group in self.shape.groups):
            name = storage.name()
            notes = [f"{name} quantises keys and values; latent attention caches neither and is counted without it."]
            storage = Native()
        words = choice_words(setup.policy)
        if storage != Native():
            words += f", {choice_words(storage)}"
        ask = ask_for(setup.policy, self.shape, tokens=self.tokens, batch=self.batch, dtype=self.dtype, storage=storage)
        return ask, words, notes


def controls(view: View) -> Chosen:
    """Draw them; a value that is wrong is said beside it, and what was right before is shown."""
    left, middle, right = st.columns([2, 1, 1])
    with left:
        shape = chosen_shape()
    tokens = number(middle, "Tokens of context", "tokens", MOST_TOKENS, step=1024)
    batch = number(right, "Sequences", "batch", MOST_BATCH)
    with st.expander("Number format, GPU, weights"):
        left, middle, right, last = st.columns(4)
    dtype = number_format(left, shape)
    room = number(middle, "Memory of one GPU (GiB)", "room", MOST_ROOM)
    gpus = number(right, "GPUs that share the heads", "gpus", MOST_BATCH)
    shape = weighed(last, shape)
    weights = -(-weight_bytes(shape) // gpus)
    return Chosen(shared(shape, gpus), tokens, batch, dtype, room * GIB, weights, gpus, shape)


def number_format(place: Any, shape: Shape) -> str:
    """In what numbers the cache is held: the model's own, or others."""
    names = {OWN: f"as the model ({shape.dtype})"}
    looks = {"format_func": lambda word: names.get(word, word), **kept_setting(MemorySettings, "dtype")}
    dtype = setting("mem_dtype", place.selectbox("Number format of the cache", DTYPES, **looks))
    return shape.dtype if dtype == OWN else str(dtype)


def weighed(place: Any, shape: Shape) -> Shape:
    """The model with as many parameters as the field says; an empty one leaves those of the table."""
    known = f"{(shape.parameters or 0) // 10**6:,}"
    said = "The weights need memory too: parameters × bytes of a number."
    looks: dict[str, Any] = {"placeholder": known, "help": said}
    million = whole_number(place, "Parameters (million)", "mem_parameters", None, 0, MOST_PARAMETERS, **looks)
    return shape if million is None else replace(shape, parameters=million * 10**6)


def number(place: Any, label: str, name: str, most: int, step: int = 1) -> int:
    """A whole number among the settings; the last good one stays while the field holds none."""
    good, link = st.session_state["good"], link_of(MemorySettings, name)
    try:
        value = whole_number(place, label, link.word, link.default, 1, most, step=step)
    except ValueError as error:
        st.error(str(error))
        value = None
    good[link.word] = good.get(link.word, link.default) if value is None else value
    return int(good[link.word])


def shared(shape: Shape, gpus: int) -> Shape:
    try:
        return shape.on_each_of(gpus)
    except ValueError as error:
        st.error(f"{error} The bytes are those on one GPU.")
        return shape


def chosen_shape() -> Shape:
    """A model of the table, or the one a config describes; the last good one while the config is not."""
    choices = [*PRESETS, PASTE, UPLOAD]
    name = st.selectbox(
        "Model",
        choices,
        format_func=lambda name: NAMES.get(name) or name.rpartition("/")[2],
        **kept_setting(MemorySettings, "model"),
    )
    setting("mem_model", name)
    if name in PRESETS:
        return good_shape(preset, name)
    if name == UPLOAD:
        upload()
    else:
        st.text_area(
            "The model's config.json",
            height=160,
            max_chars=1_000_000,
            placeholder='{"num_hidden_layers": 32, …}',
            **kept_setting(MemorySettings, "config"),
        )
    config = setting("mem_config", "")
    if not config:
        st.info("Paste or upload the config.json of any model; until then the previous model is shown.")
        return last_shape()
    if not fits_a_link(config):
        st.caption("This config is too long to travel in the link; whoever opens it is asked for a config.")
    return good_shape(read, config)


def upload() -> None:
    """Put an uploaded config where a pasted one would be."""
    file = st.file_uploader("The model's config.json", key="mem_upload", max_upload_size=1)
    if file is None:
        if config := setting("mem_config", ""):
            st.caption(still_in_use("config", config))
        return
    try:
        config = config_words(file.getvalue())
    except ValueError as error:
        st.error(str(error))
        return
    st.session_state["settings"]["mem_config"] = st.session_state["mem_config"] = config


@lru_cache(maxsize=64)
def read(config: str) -> Shape:
    return read_config(config)


def good_shape(make: Callable[[str], Shape], word: str) -> Shape:
    try:
        shape = make(word)
    except ValueError as error:
        st.error(plain(f"{error} The previous model is shown."))
        return last_shape()
    st.session_state["good"]["mem_shape"] = shape
    return shape


def last_shape() -> Shape:
    shape: Shape = st.session_state["good"].get("mem_shape") or preset(MemorySettings().model)
    return shape
