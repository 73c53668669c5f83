"""What the Prefixes page says: where a prompt breaks, why, and what happened to the blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kvviz.analysis.sharing.serve import Sharing, serve
from kvviz.analysis.sharing.server import Served, Snapshot
from kvviz.cache.sharing.sequences import Event
from kvviz.measures.prefixes import first_difference
from kvviz.ui.prefixes import differences, run
from kvviz.ui.prefixes import view as look
from kvviz.ui.prefixes.run import Shared
from kvviz.ui.prefixes.settings import PrefixesSettings
from kvviz.ui.shell.settings import PASTE
from kvviz.ui.shell.state import View
from tests.tiny import tiny

MIB = 2**20


def shared(*texts: list[str], block: int = 2, hits: tuple[int, ...] = ()) -> Shared:
    """Prompts given by their tokens' texts."""
    names = sorted({piece for text in texts for piece in text})
    ids = tuple(tuple(names.index(piece) for piece in text) for text in texts)
    served = []
    for place, one in enumerate(ids):
        hit = hits[place] if hits else 0
        served.append(Served(len(one), hit, first_difference(ids, place), np.full(len(one) - hit, 1e-5), 0.1, 0.2))
    step = Snapshot(
        "Prompt 2 read", 1, (Event("hit", 0), Event("allocate", 1), Event("evict", 2)), ((0, 2, 2), (1, 0, 1))
    )
    labels = tuple(tuple(piece.replace(" ", "␣") for piece in text) for text in texts)
    return Shared(Sharing(tuple(served), (step,), block, 4 * MIB, MIB), ids, labels, tuple(map(tuple, texts)))


DATED = shared(["It", " is", " 14", " July"], ["It", " is", " 15", " July"], hits=(0, 2))


def test_the_headline_names_the_token_on_both_sides() -> None:
    assert look.headline(DATED) == (
        "Prompt 2 shares 2 of 4 tokens with prompt 1 and breaks at token 2, ‘␣15’ against ‘␣14’; 1 block of 2 was a "
        "hit."
    )
    same = shared(["a", "b", "c"], ["a", "b", "c"], hits=(0, 2))
    assert look.headline(same).startswith("No prompt differs from an earlier one before either ends: 2 tokens in whole")
    assert "nothing to share it with" in look.headline(shared(["a"]))


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (["a", " 14"], ["a", " 15"], "A number differs"),
        (["a", "b"], ["a", "\n", "b"], "Only white space differs"),
        (["a", " b"], ["a", "  b"], "Only white space differs"),
        (["a", " The"], ["a", " the"], "Only capital letters differ"),
        (["a", "tok", "ens"], ["a", "tokens"], "the tokens are not: the text was cut into other pieces"),
        (["a", " "], ["a", " yes"], "the tokens are not: the text was cut into other pieces"),
        (["a", " cat"], ["a", " dog"], "Another word stands there"),
        ([" cat", "b"], [" dog", "b"], "It is the very first token, so nothing can be shared"),
        (["a", "b", "c"], ["a", "b", "c"], "It is the same prompt once more"),
        (["a", "b", "c"], ["a", "b"], "It is the beginning of prompt 1"),
        (["a", "b"], ["a", "b", "c"], "It goes on where prompt 1 ends"),
    ],
)
def test_the_reason_in_plain_words(one: list[str], other: list[str], words: str) -> None:
    found = shared(one, other)
    assert words in differences.reason(found, differences.breaks(found)[0])


def test_equal_tokens_that_fill_no_block_are_said() -> None:
    (only,) = differences.breaks(DATED)
    assert differences.reason(DATED, only).endswith("Hits are the 2 tokens in whole blocks of 2 before it.")
    wide = replace(DATED, sharing=replace(DATED.sharing, block=16))
    none = replace(wide, sharing=replace(wide.sharing, prompts=shared(*map(list, DATED.pieces)).sharing.prompts))
    assert "The 2 equal tokens before it do not fill a block of 16: no hit." in differences.reason(none, only)


@pytest.mark.parametrize("end", [" x", " y"])
def test_what_was_evicted_is_not_put_down_to_the_block_size(end: str) -> None:
    """Prompt 3 begins like prompt 1, whose blocks had to leave: really served under a budget of three blocks."""
    long, other = [f"a{place}" for place in range(8)], [f"b{place}" for place in range(8)]
    texts = ([*long, " x"], [*other, " x"], [*long, end])
    names = sorted({piece for text in texts for piece in text})
    ids = tuple(tuple(names.index(piece) for piece in text) for text in texts)
    pieces = tuple(map(tuple, texts))
    for limit, words in ((3, "8 of those had been evicted"), (None, "whole blocks of 4")):
        found = Shared(serve(tiny("llama"), ids, block=4, limit=limit), ids, pieces, pieces)
        said = differences.reason(found, differences.breaks(found)[-1])
        assert words in said and "do not fill a block" not in said and ("evicted" in said) == (limit is not None)


def test_both_sides_are_escaped() -> None:
    hostile = shared(["<script>", "</b>"], ["<script>", "&amp;"])
    written = differences.sides(hostile, differences.breaks(hostile)[0])
    assert "&lt;script&gt;" in written and "&amp;amp;" in written and "<script>" not in written


def test_the_chosen_prompt_is_shown_else_the_first_that_differs() -> None:
    three = shared(["a", "b"], ["a", "b"], ["a", "c"])
    for chosen, prompt in ((None, 2), (2, 1), (3, 2), (9, 2)):
        found = differences.chosen_break(three, chosen)
        assert found is not None and found.prompt == prompt
    assert differences.chosen_break(shared(["a"]), None) is None


def test_a_step_of_the_pool() -> None:
    said = look.step_words(DATED, 0)
    assert "Blocks: 1 taken from the cache, 1 newly filled, 1 evicted." in said
    assert "Now 2 blocks: 1 held by open prompts, 1 only kept for later." in said
    assert look.step_of(DATED, None) == look.step_of(DATED, 99) == 0


def test_savings_in_numbers() -> None:
    said = look.saved_words(DATED)
    assert "Of 8 tokens 2 were hits, so 6 were computed: 25% of the prefill work is saved" in said
    assert "0.2 s instead of 0.4 s (0.5 times)" in said and "1 MiB instead of 4 MiB" in said
    assert "at most 1.0·10⁻⁵ nats. Up to 2·10⁻⁴" in look.equal_words(DATED)
    served = tuple(replace(one, gaps=one.gaps + 3) for one in DATED.sharing.prompts)
    wrong = replace(DATED, sharing=replace(DATED.sharing, prompts=served))
    assert "3 nats. In float32 that is more than the 2·10⁻⁴" in look.equal_words(wrong)
    assert len(look.gap_figure(DATED).figure.data) == 2
    assert "of which 2 were hits" in look.tree_figure(DATED).alt


def test_pasted_prompts_travel_in_the_link_as_far_as_they_fit() -> None:
    own = PrefixesSettings(chosen=PASTE, pasted="a\n---\nb")
    words = own.words()
    assert words["own_prompts"].startswith("z:")
    view = replace(View(), own=(own,))
    assert run.prompts_of(view) == ["a", "b"]
    assert "own_prompts" not in PrefixesSettings(pasted="a").words()
    with pytest.raises(ValueError, match="There is no prompt yet"):
        run.prompts_of(replace(View(), own=(PrefixesSettings(chosen=PASTE),)))
    with pytest.raises(ValueError, match="Prompt 1 has 2,049 tokens"):
        run.refuse_long([tuple(range(2049))])
