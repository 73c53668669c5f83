"""What the Precision page says of given numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kvviz.analysis.precision.errors import Errors, Layers
from kvviz.analysis.precision.groups import Bytes, Group
from kvviz.ui.precision import channels, cost, errors, worked
from kvviz.ui.precision.errors import Measured
from kvviz.ui.precision.settings import PrecisionSettings
from kvviz.ui.shell.state import View

MIB = 2**20


def some_errors(size: float) -> Errors:
    """Two layers, four query heads, two KV heads; the second layer is twice as bad."""
    by_head, by_kv = (np.outer([size, 2 * size], np.ones(count)) for count in (4, 2))
    return Errors(by_kv, by_kv, by_head, by_head, by_head, np.full((2, 2, 3), size))


SIZES = np.array([[[1.0, 1.0, 9.0], [1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]])
FOUND = Measured(
    Layers(
        {
            (bits, way): some_errors(size * times)
            for bits, size in (("int8", 0.001), ("int4", 0.02), ("int2", 0.1))
            for way, times in (("channel", 1), ("token", 2))
        },
        SIZES,
        224,
    ),
    256,
)
CHOSEN = PrecisionSettings()


def test_the_headline_has_every_storage_and_its_worst_layer() -> None:
    assert errors.headline(FOUND, CHOSEN) == (
        "int4 keys move 3 % of the attention (4 % in layer 1); int2 15 % (20 % in layer 1); int8 0.15 % (0.2 % in "
        "layer 1)."
    )
    assert "int4 keys move 6 %" in errors.headline(FOUND, replace(CHOSEN, grouping="token"))
    assert "of which the last query sees 224 keys coded" in errors.measured_words(FOUND, CHOSEN)


def test_the_map_reaches_its_largest_value() -> None:
    drawing = errors.map_figure(FOUND, CHOSEN)
    assert drawing.figure.data[0].zmax == pytest.approx(0.04)
    assert "share of the attention" in drawing.alt
    assert len(errors.lines_figure(FOUND, CHOSEN).figure.data) == 3


def test_outlier_channels_are_named() -> None:
    assert channels.outliers(FOUND, 0, 0) == [2] and channels.outliers(FOUND, 0, 1) == []
    said = channels.channel_words(FOUND, CHOSEN, 0, 0)
    assert "of 3 channels these are more than 4 times the median one: 2 (9 times)." in said
    assert "keys are off by 2 % of their length; with a scale for channels of one key" in said and "by 4 %" in said
    assert "no channel is more than 4 times" in channels.channel_words(FOUND, CHOSEN, 0, 1)
    view = replace(View(), layer=9, head=9)
    assert channels.place(view, FOUND) == (1, 1)


def test_a_group_is_written_as_a_calculation() -> None:
    group = Group(
        np.array([-1.0, 0.4, 2.0]), np.array([0, 1, 3], np.uint8), 1.0, -1.0, np.array([-1.0, 0.0, 2.0]), (4, 5, 6)
    )
    asked = worked.Asked("int2", "channel", 3, 1, 1, 7)
    said = worked.group_words(group, asked)
    assert "channel 7 of the keys at positions 4–6: 3 numbers from -1 to 2. Minimum -1; scale (2 − -1) / 3 = 1." in said
    assert "0.4 → 1 → 0" in said and "The largest error is 0.4, at most half a scale." in said
    one = worked.group_words(group, replace(asked, grouping="token"))
    assert "channels 4–6 of one key, the first of block 1" in one
    assert worked.figure(group, asked).table.header[0] == "position of the key"


def test_bytes_and_bits() -> None:
    native = cost.Cost("native", 3.0, Bytes(0, 0, 32 * MIB), 8 * MIB)
    coded = cost.Cost("int4", 3.25, Bytes(4 * MIB, 2 * MIB, 2 * MIB), 8 * MIB)
    assert (native.bits, coded.bits) == (32, 8)
    assert "int4 +0.25 nats at 25% of the bytes" in cost.cost_words([native, coded])
    assert cost.byte_table([native, coded]).splitlines()[-1] == "| int4 | 4 MiB | 2 MiB | 2 MiB | 8 MiB | 8 |"
    assert "lies between 0% and 43%" in cost.interval_words(0, 5)


def test_groups_that_do_not_fit_are_refused() -> None:
    view = replace(View(), own=(PrecisionSettings(group=48, residual=32),))
    with pytest.raises(ValueError, match="residual=32 must be a multiple of group=48"):
        errors.storages(view)
