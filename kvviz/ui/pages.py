"""The pages: one row for each, in the order of the menu. A page opens through here, so that the shell knows all rows.

A new page is a script in ``pages/``, a folder beside this file and a row below.
"""

from __future__ import annotations

from kvviz.ui.attention.examples import EXAMPLES as ATTENTION
from kvviz.ui.attention.settings import AttentionSettings
from kvviz.ui.branches.examples import EXAMPLES as BRANCHES
from kvviz.ui.branches.settings import BranchesSettings
from kvviz.ui.cache.examples import EXAMPLES as CACHE
from kvviz.ui.cache.settings import CacheSettings
from kvviz.ui.exactness.examples import EXAMPLES as EXACTNESS
from kvviz.ui.exactness.settings import ExactnessSettings
from kvviz.ui.memory.examples import EXAMPLES as MEMORY
from kvviz.ui.memory.settings import MemorySettings
from kvviz.ui.precision.examples import EXAMPLES as PRECISION
from kvviz.ui.precision.settings import PrecisionSettings
from kvviz.ui.prefixes.examples import EXAMPLES as PREFIXES
from kvviz.ui.prefixes.settings import PrefixesSettings
from kvviz.ui.quality.examples import EXAMPLES as QUALITY
from kvviz.ui.quality.settings import QualitySettings
from kvviz.ui.receptive_field.examples import EXAMPLES as RECEPTIVE_FIELD
from kvviz.ui.receptive_field.settings import ReachSettings
from kvviz.ui.shell.page import open_page
from kvviz.ui.shell.settings import PageEntry, register
from kvviz.ui.sinks.examples import EXAMPLES as SINKS
from kvviz.ui.sinks.settings import SinksSettings
from kvviz.ui.speed.examples import EXAMPLES as SPEED
from kvviz.ui.speed.settings import SpeedSettings
from kvviz.ui.start.examples import EXAMPLES as START

__all__ = ["PAGES", "open_page"]

PAGES = (
    PageEntry("See", "app.py", "Start", None, START),
    PageEntry("See", "pages/1_Attention.py", "Attention", AttentionSettings, ATTENTION),
    PageEntry("See", "pages/2_Sinks.py", "Sinks", SinksSettings, SINKS),
    PageEntry("See", "pages/3_Receptive_field.py", "Receptive field", ReachSettings, RECEPTIVE_FIELD),
    PageEntry("See", "pages/4_Cache.py", "Cache", CacheSettings, CACHE),
    PageEntry("Weigh", "pages/5_Memory.py", "Memory", MemorySettings, MEMORY),
    PageEntry("Weigh", "pages/6_Quality.py", "Quality", QualitySettings, QUALITY),
    PageEntry("Weigh", "pages/7_Speed.py", "Speed", SpeedSettings, SPEED),
    PageEntry("Weigh", "pages/9_Precision.py", "Precision", PrecisionSettings, PRECISION),
    PageEntry("Trust", "pages/8_Exactness.py", "Exactness", ExactnessSettings, EXACTNESS),
    PageEntry("Trust", "pages/10_Branches.py", "Branches", BranchesSettings, BRANCHES),
    PageEntry("Trust", "pages/11_Prefixes.py", "Prefixes", PrefixesSettings, PREFIXES),
)
register(PAGES)
