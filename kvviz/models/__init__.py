"""Models: the table, loading one by name, its tokens, its positions, its heads; may import text.

``load()`` fetches the default model once, checks its hash and keeps it in the user's cache folder.
"""

from kvviz.models.load import Loaded, check_name, load
from kvviz.models.place import choose_device, choose_dtype
from kvviz.models.store import cache_folder, is_ready
from kvviz.models.table import DEFAULT_MODEL, MODELS, ModelCard, ModelError

__all__ = [
    "DEFAULT_MODEL",
    "MODELS",
    "Loaded",
    "ModelCard",
    "ModelError",
    "cache_folder",
    "check_name",
    "choose_device",
    "choose_dtype",
    "is_ready",
    "load",
]
