"""What the Speed page says in words, and its two figures."""

from __future__ import annotations

from kvviz.figures import Drawing
from kvviz.figures.speed import Steps, bytes_read, step_times
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.speed.steps import Speeds


def headline(found: Speeds) -> str:
    """How fast A decodes, how far that is from the limit, and the same of B."""
    return f"After {found.steps[0].tokens[-1]:,} tokens {'; '.join(side_speed(found, s) for s in found.steps)}."


def side_speed(found: Speeds, steps: Steps) -> str:
    limit = steps.limits(found.weight_bytes, found.bandwidth)[-1]
    return (
        f"{steps.side.upper()} decodes {1 / steps.seconds[-1]:.3g} tokens/s: a step takes "
        f"{steps.seconds[-1] / limit:.2g} times as long as reading weights and cache alone"
    )


def growth(found: Speeds) -> str:
    """How much slower the steps become from the shortest prompt to the longest."""
    first, last = found.steps[0].tokens[0], found.steps[0].tokens[-1]
    if first == last:
        return ""
    parts = [f"{s.seconds[-1] / s.seconds[0]:.2f} times as long under {s.side.upper()}" for s in found.steps]
    return f"From {first:,} to {last:,} tokens a step takes {' and '.join(parts)}."


def measured_on(found: Speeds) -> str:
    """Where, and what the machine can read."""
    return (
        f"Measured on {found.place}. This machine reads {found.bandwidth / 1e9:.3g} GB/s from memory; a step reads "
        f"{found.weight_bytes / 2**20:,.0f} MiB of weights besides the cache. Other work on this machine makes a time "
        "longer, never shorter."
    )


def times_figure(found: Speeds) -> Drawing:
    return drawn(step_times, found.steps, found.weight_bytes, found.bandwidth, title="Time of one step")


def bytes_figure(found: Speeds) -> Drawing:
    return drawn(bytes_read, found.steps, found.weight_bytes, title="Read in one step")
