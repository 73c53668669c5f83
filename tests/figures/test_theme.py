import itertools

import numpy as np
import pytest

from kvviz.figures import theme

WHITE, DARK = "#ffffff", "#0e1117"  # the two page backgrounds

# what a deuteranope and a protanope see, on linear RGB (Machado, Oliveira and Fernandes, 2009)
SEEN_BY = {
    "deuteranope": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanope": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}


def linear(colour):
    parts = np.array(theme.channels(colour)) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(light):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ light.clip(0, 1)
    ratio = xyz / [0.9505, 1, 1.089]
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_contrast_is_that_of_the_standard():
    assert theme.contrast("#000000", WHITE) == pytest.approx(21)
    assert theme.contrast("#777777", WHITE) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("grey", range(0, 256, 5))
def test_text_reads_on_every_ground(grey):
    """Known fault 139: text on a coloured ground cannot be read at some values."""
    colour = f"#{grey:02x}{grey:02x}{grey:02x}"
    assert theme.contrast(theme.text_on(colour), colour) >= 4.5


def test_text_reads_on_accents_and_shades():
    for colour in [*theme.ACCENT.values(), *map(theme.paler, theme.ACCENT.values()), *theme.shades(33)]:
        assert theme.contrast(theme.text_on(colour), colour) >= 4.5


def test_accents_and_roles_stand_out_from_light_and_dark_pages():
    for colour in [*(line for line, _ in theme.LINES.values()), *(role.colour for role in theme.ROLES)]:
        assert theme.contrast(colour, WHITE) >= 2.5
        assert theme.contrast(colour, DARK) >= 3


@pytest.mark.parametrize("eye", SEEN_BY)
def test_roles_and_accents_stay_apart_for_colour_blind_eyes(eye):
    """Known fault 140: the colours are neither even nor safe for colour-blind eyes."""
    roles = {role.name: role.colour for role in theme.ROLES}
    pairs = [*itertools.combinations([roles["sink"], roles["recent"], roles["heavy"]], 2), tuple(theme.ACCENT.values())]
    for one, other in pairs:
        matrix = np.array(SEEN_BY[eye])
        assert np.linalg.norm(lab(matrix @ linear(one)) - lab(matrix @ linear(other))) > 25


@pytest.mark.parametrize("eye", SEEN_BY)
def test_eight_lines_stay_apart_by_colour_and_those_of_like_colour_by_dash(eye):
    matrix = np.array(SEEN_BY[eye])
    for (one, dash), (other, other_dash) in itertools.combinations(theme.LINES.values(), 2):
        gap = np.linalg.norm(lab(matrix @ linear(one)) - lab(matrix @ linear(other)))
        assert gap > (25 if dash == other_dash else 14), (one, other)


def test_the_sequential_map_grows_lighter_step_by_step():
    """Known fault 140: the colours are neither even nor safe for colour-blind eyes."""
    luminances = [theme.luminance(colour) for colour in theme.shades(33)]
    assert all(low < high for low, high in itertools.pairwise(luminances))


def test_roles_have_distinct_codes_below_the_code_of_what_is_gone():
    assert sorted(theme.HELD_CODES.values()) == list(range(1, theme.GONE_CODE))
