"""How a weight becomes a colour: linear or logarithmic, from 0 to a maximum that several figures can share.

The figure's array keeps the real weights. A logarithmic scale bends the colour scale instead of the numbers, so that
the hover, the CSV and two figures side by side speak of the same values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.measures.sinks import SINKS

ScaleName = Literal["log", "linear", "no_sinks"]
FLOOR = 1e-4  # weights below it share the darkest colour of the logarithmic scale
BINS = 32


@dataclass(frozen=True)
class Scale:
    """Colours for values from 0 to ``top``."""

    name: ScaleName
    top: float

    def __post_init__(self) -> None:
        if self.name not in ("log", "linear", "no_sinks"):
            raise ValueError(f"There is no scale {self.name!r}; choose log, linear or no_sinks.")
        if not self.top > 0:
            raise ValueError(f"The top of a colour scale must be above 0, not {self.top}.")

    @property
    def floor(self) -> float:
        return min(FLOOR, self.top / 10)

    def place(self, value: float) -> float:
        """Where the value lies on the colour bar, 0 to 1."""
        if self.name != "log":
            return min(max(value / self.top, 0.0), 1.0)
        span = np.log10(self.top / self.floor)
        return float(np.clip(np.log10(max(value, self.floor) / self.floor) / span, 0, 1))

    def values(self, count: int = BINS) -> list[float]:
        """The values at ``count`` + 1 evenly spaced places of the colour bar, as shares of the top."""
        places = np.linspace(0, 1, count + 1)
        if self.name == "log":
            places = np.concatenate([[0.0], (self.floor / self.top) ** (1 - places)[1:]])
        shares: list[float] = places.tolist()
        return shares

    def stops(self) -> list[tuple[float, str]]:
        """The plotly colour scale over [0, top]."""
        return list(zip(self.values(), theme.shades(BINS + 1), strict=True))

    def ticks(self) -> list[float]:
        """Round values to print along the colour bar."""
        if self.name != "log":
            return [share * self.top for share in (0, 0.25, 0.5, 0.75, 1)]
        decades = range(int(np.ceil(np.log10(self.floor))), int(np.floor(np.log10(self.top) + 1e-9)) + 1)
        return [10.0**decade for decade in decades]

    def tick_texts(self) -> list[str]:
        texts = [f"{value:.3g}" for value in self.ticks()]
        return ["≤ " + texts[0], *texts[1:]] if self.name == "log" else texts

    def bar(self) -> go.Scatter:
        """An empty trace that carries the colour bar, spaced as the eye reads it."""
        places = [self.place(value) for value in self.ticks()]
        return colour_bar(EVEN_SHADES, places, self.tick_texts())


# the sequential map as a plotly colour scale over [0, 1]
EVEN_SHADES = [(step / BINS, colour) for step, colour in enumerate(theme.shades(BINS + 1))]


def colour_bar(stops: list[tuple[float, str]], places: list[float], texts: list[str]) -> go.Scatter:
    """An invisible trace with a horizontal colour bar from 0 to 1 above the plot, so that it fits a narrow screen.

    The frame writes its title, at the left, where the figure's title begins too.
    """
    bar: dict[str, Any] = {
        "orientation": "h",
        "thickness": 10,
        "x": 0,
        "xanchor": "left",
        "xpad": 0,
        "len": 1,
        "y": 0.9999,  # at exactly 1 plotly pushes the figure's title out of sight
        "yanchor": "bottom",
        "ypad": 8,
        "outlinewidth": 0,
        "ticklabelposition": "outside bottom",
        "tickvals": places,
        "ticktext": texts,
    }
    marker = {"color": [0.0], "cmin": 0, "cmax": 1, "colorscale": stops, "showscale": True, "colorbar": bar}
    return unseen({"marker": marker, "showlegend": False})


def unseen(look: dict[str, Any]) -> go.Scatter:
    """A trace without data, for the sake of its colour bar or its entry in the legend."""
    return go.Scatter({"x": [None], "y": [None], "mode": "markers", "hoverinfo": "skip"} | look)


def shared_top(maps: Iterable[NDArray[np.floating]], scale: ScaleName, sinks: int = SINKS) -> float:
    """The colour maximum for several maps at once.

    A share is always drawn from 0 to 1, so that any two pictures compare. Without the sinks the rest is small, and the
    largest weight outside the first ``sinks`` keys of all the maps together is the maximum.
    """
    if scale != "no_sinks":
        return 1.0
    rests = [weights[:, sinks:] for weights in maps]
    return max((float(np.nanmax(rest)) for rest in rests if np.isfinite(rest).any()), default=1.0) or 1.0
