"""Parts of a page that plain Streamlit has not: they run in the browser and change nothing but their own place."""

from kvviz.ui.components.layer_head_picker import layer_head_picker
from kvviz.ui.components.step_player import step_player
from kvviz.ui.components.token_strip import token_strip

__all__ = ["layer_head_picker", "step_player", "token_strip"]
