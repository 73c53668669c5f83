import pytest

from kvviz.figures import ring, theme
from tests.figures.examples import labels


def test_a_position_lies_in_its_number_mod_the_budget():
    drawing = ring(range(4, 8), 4, labels(12, first=1), newest=7, count_from=1)  # numbers 5 to 8
    fig = drawing.figure
    slots = list(fig.data[0].text)
    assert [text.split()[0] for text in slots] == ["8", "5", "6", "7"]
    assert slots[0].endswith("slot 0")
    assert "is in slot 0" in drawing.alt


def test_the_newest_has_the_accent_and_empty_slots_have_none():
    colours = ring([0, 1], 4, labels(4), newest=1, side="b").figure.data[0].marker.colors
    assert list(colours) == [theme.paler(theme.ACCENT["b"]), theme.ACCENT["b"], theme.GROUND, theme.GROUND]


def test_the_centre_says_what_is_overwritten_next():
    full = ring(range(4, 8), 4, labels(12), newest=7).figure.layout.annotations[0].text
    assert "went to slot 3" in full and "overwritten:<br>4 " in full
    assert "overwritten" not in ring([0, 1], 4, labels(4), newest=1).figure.layout.annotations[0].text


def test_a_large_ring_names_some_slots_and_always_the_newest():
    fig = ring(range(300, 500), 200, labels(500), newest=499).figure
    named = [text for text in fig.data[0].text if text]
    assert len(fig.data[0].text) == 200 and 32 <= len(named) <= 65
    assert any(text.startswith("499 ") for text in named)


def test_a_ring_without_slots_is_refused():
    with pytest.raises(ValueError, match="at least 1 slot"):
        ring([], 0, labels(1), newest=0)
