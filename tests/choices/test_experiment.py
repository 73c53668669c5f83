from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvviz.choices.experiment import Experiment
from kvviz.choices.linked_text import Text, parse_text
from kvviz.choices.setup import Setup, parse_setup, read_setup, setup_from_query, setup_query, spelled
from kvviz.choices.texts import PRESETS

SETUPS = st.builds(
    lambda policy, pattern, positions, softmax: parse_setup(
        {"policy": policy, "pattern": pattern, "positions": positions, "softmax": softmax}
    ),
    st.sampled_from(["full", "window:budget=7", "streaming:budget=64,sinks=4", "random:budget=3,seed=9"]),
    st.sampled_from(["causal", "sliding:window=12"]),
    st.sampled_from(["original", "slot"]),
    st.sampled_from(["standard", "off_by_one"]),
)
PRINTABLE = st.text(min_size=1, max_size=300).filter(lambda t: t.isprintable() or "\n" in t)


@given(
    SETUPS,
    st.one_of(st.sampled_from(sorted(PRESETS)).map(Text.of_preset), PRINTABLE.map(Text)),
    st.integers(1, 8192),
    st.one_of(st.none(), st.integers(1, 8192)),
    st.integers(0, 99),
)
def test_an_experiment_survives_its_url(
    setup: Setup, text: Text, tokens: int, prompt_tokens: int | None, seed: int
) -> None:
    experiment = Experiment(setup, text, tokens, prompt_tokens, seed=seed)
    again, notes = Experiment.from_query(experiment.query())
    assert again == experiment and hash(again) == hash(experiment)
    assert notes == []


@given(SETUPS)
def test_a_setup_survives_its_line(setup: Setup) -> None:
    assert read_setup(spelled(setup)) == setup == read_setup(str(setup))


@pytest.mark.parametrize(
    ("line", "said"),
    [("", "There is no policy ''"), ("full causa", "did you mean 'causal'"), ("full slot slot", "two choices of pos")],
)
def test_a_line_that_spells_no_setup_is_refused(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_setup(line)


def test_a_long_text_travels_as_its_hash() -> None:
    content = PRESETS["language-reference"].text()[:60_000]
    word = Text(content).spell()
    assert word == f"sha256:{Text(content).sha256}"
    assert parse_text(word, {Text(content).sha256: content}).content == content
    _, notes = Experiment.from_query({"text": word})
    assert len(notes) == 1 and "paste or upload that text" in notes[0]


@pytest.mark.parametrize("length", [10, 2_000])
def test_a_short_text_travels_in_the_link(length: int) -> None:
    text = Text(("Ünïcödé <b>&amp;\t" * length)[:length])
    assert text.spell().startswith("z:") and len(text.spell()) <= 4096 + 2
    assert parse_text(text.spell()) == text


@pytest.mark.parametrize("word", ["z:!!!!", "z:AAAA", "z:", "z:eJzLSM3JyQcABiwCFQ"[:-4]])
def test_a_damaged_text_is_one_sentence(word: str) -> None:
    _, notes = Experiment.from_query({"text": word})
    assert len(notes) == 1 and "damaged" in notes[0]


def test_a_compression_bomb_is_refused() -> None:
    bomb = Text("a" * 3_000_000).spell()
    with pytest.raises(ValueError, match="damaged"):
        parse_text(bomb)


@pytest.mark.parametrize(
    ("query", "mentions"),
    [
        ({"policy": "windw:budget=4"}, "did you mean 'window'"),
        ({"policy": "window:budget=-1"}, "budget=-1"),
        ({"tokens": "0"}, "tokens='0'"),
        ({"tokens": "1.5"}, "tokens='1.5'"),
        ({"tokens": "99999999999999999999"}, "tokens="),
        ({"text": "nothing-like-it"}, "There is no text"),
        ({"dtype": "float8"}, "There is no dtype 'float8'"),
        ({"positions": "slots"}, "did you mean 'slot'"),
        ({"softmax": "none"}, "standard, off_by_one"),
        ({"seed": "-1"}, "seed='-1'"),
    ],
)
def test_a_bad_value_falls_back_with_a_sentence(query: dict[str, str], mentions: str) -> None:
    experiment, notes = Experiment.from_query({"generate_tokens": "5", **query})
    assert len(notes) == 1 and mentions in notes[0] and "default" in notes[0]
    assert experiment.generate_tokens == 5  # the other settings are kept


def test_labels_name_only_what_differs() -> None:
    assert str(Setup()) == "full"
    words = {"policy": "window:budget=8", "positions": "slot", "softmax": "off_by_one"}
    assert str(parse_setup(words)) == "window:budget=8 · slot · off_by_one"


@given(SETUPS)
def test_two_setups_share_a_query_by_prefix(setup: Setup) -> None:
    notes: list[str] = []
    query = {**setup_query(Setup()), **setup_query(setup, "b_")}
    assert setup_from_query(query, notes, "b_") == setup
    assert setup_from_query(query, notes) == Setup() and notes == []
