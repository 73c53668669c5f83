"""Pure plotly figures: arrays and labels in, a ``Drawing`` out: the figure with its table and its alt text.

They know no model, no trace and no page.

May import measures and text.
"""

from kvviz.figures.attention import attention_map, visibility
from kvviz.figures.difference import difference_map
from kvviz.figures.drawing import Drawing, Table
from kvviz.figures.lifetimes import lifetimes, role_codes
from kvviz.figures.overview import agreement_grid, layer_head_grid
from kvviz.figures.pooling import pool
from kvviz.figures.ring import ring
from kvviz.figures.scales import shared_top
from kvviz.figures.series import entries_over_time, series_lines

__all__ = [
    "Drawing",
    "Table",
    "agreement_grid",
    "attention_map",
    "difference_map",
    "entries_over_time",
    "layer_head_grid",
    "lifetimes",
    "pool",
    "ring",
    "role_codes",
    "series_lines",
    "shared_top",
    "visibility",
]
