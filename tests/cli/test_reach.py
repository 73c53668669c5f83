"""``python -m kvviz reach``: no model is loaded."""

import json

import pytest

from kvviz.cli import inputs
from kvviz.cli.main import main


@pytest.fixture(autouse=True)
def no_model(monkeypatch):
    monkeypatch.setattr(inputs, "load_model", lambda arguments: pytest.fail("the model was loaded"))


def rows(capsys, pattern, layers, tokens):
    assert main(["reach", "--pattern", pattern, "--layers", str(layers), "--tokens", str(tokens), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == ["layers"]
    return [(row["layer"], row["positions"], row["span"]) for row in answer["layers"]]


def test_it_counts_positions_and_span_after_each_layer(capsys):
    assert rows(capsys, "sliding:window=3", 2, 8) == [(1, 3, 3), (2, 5, 5)]
    assert rows(capsys, "dilated:window=4,dilation=2", 3, 100) == [(1, 4, 7), (2, 7, 13), (3, 10, 19)]
    assert rows(capsys, "global:window=3,tokens=0", 1, 50) == [(1, 4, 50)]
    assert rows(capsys, "causal", 2, 1) == [(1, 1, 1), (2, 1, 1)]


def test_mistrals_numbers_take_a_moment(capsys):
    assert rows(capsys, "sliding:window=4096", 32, 131_072)[-1] == (32, 131_041, 131_041)


def test_many_global_tokens_take_a_moment(capsys):
    """The last token is global and so sees all; to ask every row again said nothing for minutes."""
    found = rows(capsys, "global:window=1,tokens=262143", 2, 262_144)
    assert found == [(1, 262_144, 262_144), (2, 262_144, 262_144)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--pattern", "slidng"], "There is no pattern 'slidng'; did you mean 'sliding'?"),
        (["--layers", "0"], "--layers 0 must be at least 1."),
        (["--tokens", "0"], "--tokens 0 must be at least 1."),
        (["--layers", "9999"], "--layers 9999 is too large; choose a number from 1 to 512."),
        (["--tokens", "many"], "--tokens 'many' is not a whole number"),
    ],
)
def test_bad_input_is_one_sentence(capsys, arguments, sentence):
    options = {"--pattern": "causal", "--layers": "2", "--tokens": "8"} | {arguments[0]: arguments[1]}
    assert main(["reach", *[word for pair in options.items() for word in pair]]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err and captured.err.count("\n") == 1 and not captured.out


def test_the_pattern_is_asked_for(capsys):
    assert main(["reach", "--layers", "2", "--tokens", "8"]) == 2
    assert "--pattern" in capsys.readouterr().err
