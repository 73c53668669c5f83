"""The scripts and styles that lie beside the components, and the colours of ``figures.theme`` as CSS."""

from __future__ import annotations

from importlib.resources import files

from streamlit.components import v2
from streamlit.components.v2.types import ComponentRenderer

from kvviz.figures import theme

SHADES = 33  # steps of the sequential map; enough that neighbours look alike


def component(name: str, *names: str) -> ComponentRenderer:
    """Register the scripts and styles ``names`` with what all components share; call it once, at import.

    The scripts become one module, in this order: the browser gets their text and cannot import by path.
    """
    scripts = [one for one in ("dom.js", *names) if one.endswith(".js")]
    styles = [one for one in ("shared.css", *names) if one.endswith(".css")]
    css = colour_css() + "\n".join(map(read, styles))
    return v2.component(f"kvviz_{name}", js="\n".join(map(read, scripts)), css=css)


def read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def colour_css() -> str:
    """Accents, roles and what is gone, as custom properties that the style sheets use."""
    accents = [f".kv-{side} {{ {fill_and_ink(colour)} }}" for side, colour in theme.ACCENT.items()]
    roles = [f".kv-role-{code} {{ --role: {role.colour}; }}" for code, role in enumerate(theme.ROLES, 1)]
    return "\n".join([f".kv {{ --gone: {theme.GONE}; }}", *accents, *roles, ""])


def fill_and_ink(colour: str) -> str:
    return f"--accent: {colour}; --accent-ink: {theme.text_on(colour)};"


def shades() -> list[list[str]]:
    """The sequential map from low to high: colour of the ground and of the text that reads on it."""
    return [[colour, theme.text_on(colour)] for colour in theme.shades(SHADES)]
