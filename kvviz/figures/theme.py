"""The colours of kvviz and what they mean: one accent for A, one for B, grey for what is gone, one hue per role.

Every colour is drawn on light and on dark pages, so accents and roles lie in the middle of the luminance range, and
the two continuous maps start with a colour that neither page background has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

Side = Literal["a", "b"]

ACCENT: Final[dict[Side, str]] = {"a": "#2f74c8", "b": "#d9660a"}
DASH: Final[dict[Side, str]] = {"a": "solid", "b": "dash"}  # A and B stay apart in black and white too
LineName = Literal["a", "b", "c", "d", "e", "f", "g", "h"]
# colour and dash of up to eight lines in one figure, the first two those of A and B
LINES: Final[dict[LineName, tuple[str, str]]] = {
    "a": (ACCENT["a"], DASH["a"]),
    "b": (ACCENT["b"], DASH["b"]),
    "c": ("#cc79a7", "solid"),
    "d": ("#6aa82e", "dot"),
    "e": ("#8c564b", "longdash"),
    "f": ("#4aa3d8", "dashdot"),
    "g": ("#777777", "dash"),
    "h": ("#7d7f3a", "solid"),
}
GONE: Final = "rgba(128,128,128,0.30)"
CLEAR: Final = "rgba(128,128,128,0)"
GROUND: Final = "rgba(128,128,128,0.10)"  # behind maps, so that blank cells are seen to be blank
GRID: Final = "rgba(128,128,128,0.22)"
RULE: Final = "rgba(128,128,128,0.60)"  # thin lines that mark a place, on any background


@dataclass(frozen=True)
class Role:
    """Why a token is in the cache: the policy's word for it, the legend's words, and its colour."""

    name: str
    label: str
    colour: str


ROLES: Final = (
    Role("sink", "sink", "#a0449f"),
    Role("recent", "recent", "#1f9a8a"),
    Role("heavy", "heavy hitter", "#c9971c"),
    Role("window", "observation window", "#6aa5e0"),
    Role("other", "held", "#7d7f3a"),
)
HELD_CODES: Final = {role.name: code for code, role in enumerate(ROLES, 1)}  # 0 means not yet in the text
OTHER_CODE: Final = HELD_CODES["other"]
GONE_CODE: Final = len(ROLES) + 1

# viridis: perceptually uniform, safe for colour-blind eyes, still ordered in grey
SEQUENTIAL: Final = (
    *("#440154", "#482878", "#3e4989", "#31688e", "#26828e"),
    *("#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"),
)
# blue where A has more, orange where B has more; equal is a faint grey, which no page background is
DIVERGING: Final[list[tuple[float, str]]] = [
    (0.0, "rgba(217,102,10,1)"),
    (0.5, "rgba(128,128,128,0.16)"),
    (1.0, "rgba(47,116,200,1)"),
]


def channels(colour: str) -> list[int]:
    """Red, green and blue of ``#rrggbb``, 0 to 255."""
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def paler(colour: str) -> str:
    """``#rrggbb`` mixed with white, opaque, so that black text reads on it on any page."""
    return "#{:02x}{:02x}{:02x}".format(*(round(0.35 * part + 0.65 * 255) for part in channels(colour)))


def shades(count: int) -> list[str]:
    """``count`` evenly spaced colours of the sequential map."""
    stops = np.array([channels(colour) for colour in SEQUENTIAL])
    places = np.linspace(0, len(stops) - 1, count)
    mixed = np.stack([np.interp(places, np.arange(len(stops)), stops[:, part]) for part in range(3)], axis=1)
    return ["#{:02x}{:02x}{:02x}".format(*row) for row in mixed.round().astype(int).tolist()]


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` as WCAG defines it, 0 (black) to 1 (white)."""
    parts = [part / 255 for part in channels(colour)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two ``#rrggbb`` colours, 1 (equal) to 21 (black on white)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def text_on(colour: str) -> str:
    """Black or white, whichever reads better on ``#rrggbb``; the better of the two is always at least 4.5 : 1."""
    return max("#000000", "#ffffff", key=lambda text: contrast(text, colour))
