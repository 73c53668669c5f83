"""What plain Streamlit has not: it runs in the browser and, but for the settings it closes, changes its own place."""

from kvviz.ui.components.layer_head_picker import layer_head_picker
from kvviz.ui.components.settings_closer import settings_closer
from kvviz.ui.components.step_player import step_player
from kvviz.ui.components.token_strip import token_strip

__all__ = ["layer_head_picker", "settings_closer", "step_player", "token_strip"]
