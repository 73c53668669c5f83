"""What the components send to the browser, and what they make of what comes back."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from kvviz.figures import role_codes
from kvviz.ui.components.layer_head_picker import inside
from kvviz.ui.components.step_player import packed, role_changes, step_player
from kvviz.ui.components.token_strip import within
from tests.ui import component_data

PAGE = Path(__file__).with_name("component_page.py")


def opened() -> AppTest:
    at = AppTest.from_file(str(PAGE), default_timeout=30).run()
    assert not at.exception
    return at


def payload(at: AppTest, place: int) -> dict[str, Any]:
    sent: dict[str, Any] = json.loads(at.get("bidi_component")[place].proto.json)
    return sent


def test_lifetimes_travel_as_two_bytes_each_and_come_back() -> None:
    lives = component_data.lifetimes(3)
    sent = base64.b64decode(packed(lives, component_data.COUNT))
    np.testing.assert_array_equal(np.frombuffer(sent, "<u2").reshape(lives.shape), lives)
    assert len(packed(np.full((3, 512), 512), 512)) == 4096


@pytest.mark.parametrize("seed", range(4))
def test_role_changes_say_the_role_at_every_step_of_a_life(seed: int) -> None:
    random = np.random.default_rng(seed)
    codes = np.tril(random.integers(1, 4, (20, 20))).astype(np.uint8)
    until = np.minimum(np.arange(20) + 1 + random.integers(0, 20, 20), 20)
    for token, changes in enumerate(role_changes(codes, until)):
        pairs = list(zip(changes[::2], changes[1::2], strict=True))
        for step in range(token, until[token]):
            assert [code for start, code in pairs if start <= step][-1] == codes[step, token]


def test_a_sink_and_a_recent_token_have_one_role_each() -> None:
    codes = role_codes(component_data.streaming_role, 6)
    assert role_changes(codes, np.full(6, 6)) == [[0, 1], [1, 1], [2, 1], [3, 1], [4, 2], [5, 2]]


def test_the_player_gets_tokens_as_they_are_and_little_else() -> None:
    sent = payload(opened(), 0)
    assert sent["tokens"] == component_data.TOKENS
    assert (sent["countFrom"], sent["promptTokens"], sent["startStep"]) == (1, 20, 5)
    assert sent["heads"] == ["KV head 0", "KV head 1"] and sent["ring"] is False
    assert len(json.dumps(sent)) < 3_000


def test_the_player_refuses_lifetimes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="3 lifetimes do not fit 2 tokens"):
        step_player(["a", "b"], np.array([1, 2, 2]))
    with pytest.raises(ValueError, match="shows 1 to"):
        step_player([], np.zeros((1, 0), dtype=int))


def test_the_picker_sends_shares_and_the_choice_of_the_session() -> None:
    at = opened()
    sent = payload(at, 2)
    assert np.array(sent["values"]).shape == (6, 9) and sent["selected"] == [2, 3] and sent["kvHeads"] == 3
    at.session_state["cell"] = (4, 8)
    at.run()
    assert payload(at, 2)["selected"] == [4, 8]
    assert "cell 4 8" in [text.value for text in at.text]


def test_a_choice_from_a_larger_model_is_moved_inside() -> None:
    at = opened()
    at.session_state["cell"] = (29, 8)
    at.session_state["query"] = 9999
    at.run()
    assert payload(at, 2)["selected"] == [5, 8]
    assert payload(at, 3)["query"] == component_data.COUNT - 1


@pytest.mark.parametrize("cell", [None, "23", [1], [1, "2"], [1.5, 2], [True, 0], {"layer": 1}])
def test_a_choice_that_is_no_pair_of_whole_numbers_is_ignored(cell: object) -> None:
    assert inside(cell, 3, 3, (1, 1)) == (1, 1)


@pytest.mark.parametrize("token", [None, "2", 1.5, True])
def test_a_query_that_is_no_whole_number_is_ignored(token: object) -> None:
    assert within(token, 3, 1) == 1


def test_the_strip_sends_the_weights_themselves_and_null_for_what_is_not_there() -> None:
    """Known fault 138: the strip, the small map and the large one show different numbers or colours."""
    sent = payload(opened(), 3)
    assert sent["weights"][:4] == [1.0, 0.5, None, 0.25]
    assert sent["levels"][0] == 32 and sent["levels"][2] is None and sent["weights"][6] is None
    assert sent["query"] == 5
