"""The channels of the keys that are outliers, and what sharing a scale with them does to the others."""

from __future__ import annotations

import numpy as np
import streamlit as st

from kvviz.figures import Drawing
from kvviz.figures.channels import channel_errors
from kvviz.models.heads import group_of
from kvviz.ui.precision.errors import Measured, percent
from kvviz.ui.precision.settings import PrecisionSettings
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain

OUTLIER, NAMED = 4.0, 4  # times the median channel; how many are named


def draw(view: View, found: Measured) -> None:
    """The chosen layer and head, channel by channel."""
    chosen = view.of(PrecisionSettings)
    layer, head = place(view, found)
    st.markdown(plain(channel_words(found, chosen, layer, head)), help=meaning("outlier channel"))
    show(figure(found, chosen, layer, head), "channels-of-keys")


def place(view: View, found: Measured) -> tuple[int, int]:
    """The layer and KV head that the sidebar's layer and query head mean in this model."""
    layers, kv_heads, _ = found.layers.sizes.shape
    heads = next(iter(found.layers.errors.values())).weights.shape[1]
    group = group_of(heads, kv_heads)
    return min(view.layer, layers - 1), min(view.head // group, kv_heads - 1)


def outliers(found: Measured, layer: int, head: int) -> list[int]:
    """Channels whose size is several times the median one, the largest first."""
    sizes = found.layers.sizes[layer, head]
    large = np.flatnonzero(sizes > OUTLIER * np.median(sizes))
    return [int(channel) for channel in large[np.argsort(-sizes[large], kind="stable")]]


def channel_words(found: Measured, chosen: PrecisionSettings, layer: int, head: int) -> str:
    """Which channels stand out, and the error of the keys under both groupings."""
    sizes = found.layers.sizes[layer, head]
    large = outliers(found, layer, head)
    where = f"Layer {layer}, KV head {head}:"
    said = f"no channel is more than {OUTLIER:g} times the median one."
    if large:
        named = ", ".join(f"{channel} ({sizes[channel] / np.median(sizes):.3g} times)" for channel in large[:NAMED])
        more = f" and {len(large) - NAMED} more" if len(large) > NAMED else ""
        said = f"of {len(sizes)} channels these are more than {OUTLIER:g} times the median one: {named}{more}."
    own, other = (found.layers.errors[chosen.bits, way].keys[layer, head] for way in ("channel", "token"))
    mean, mean_other = (found.layers.errors[chosen.bits, way].weights.mean() for way in ("channel", "token"))
    return (
        f"{where} {said} With a scale for each channel {chosen.bits} keys are off by {percent(own)} of their length; "
        f"with a scale for channels of one key, which the outliers stretch, by {percent(other)}. Over all layers the "
        f"first moves {percent(mean)} of the attention, the second {percent(mean_other)}."
    )


def figure(found: Measured, chosen: PrecisionSettings, layer: int, head: int) -> Drawing:
    """Sizes, and errors under both groupings."""
    errors = {way: found.layers.errors[chosen.bits, way].channels[layer, head] for way in ("channel", "token")}
    title = f"Channels of the keys under {chosen.bits}, layer {layer}, KV head {head}"
    sizes = found.layers.sizes[layer, head]
    return drawn(channel_errors, sizes, errors["channel"], errors["token"], OUTLIER, title=title)
