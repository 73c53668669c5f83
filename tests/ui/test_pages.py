"""Every page on the real model, without a browser: what it says, what it weighs, and what it leaves behind."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from kvviz.choices.linked_text import Text
from kvviz.knobs import spell
from kvviz.policies import POLICIES
from kvviz.policies.pyramidkv import budgets
from kvviz.ui.attention.settings import PARTS as ATTENTION_PARTS
from kvviz.ui.cache.settings import PARTS as CACHE_PARTS
from kvviz.ui.shell import runs
from kvviz.ui.shell.runs import WORKER
from kvviz.ui.shell.settings import PASTE
from kvviz.ui.sinks.settings import PARTS as SINKS_PARTS
from tests.policies.test_matrix import TELLING

pytestmark = pytest.mark.real
APP = str(Path(__file__).parent.parent.parent / "app.py")
PAGES = ("", "pages/1_Attention.py", "pages/4_Cache.py", "pages/2_Sinks.py")
START, ATTENTION, CACHE, SINKS = PAGES
TOY = {"text": "toy", "tokens": "12"}
BAD = {"policy": "windw:budget=4", "tokens": "-3", "layer": "999999", "scale": "pink", "text": "z:broken"}
SHORT = {"text": "story", "tokens": "40"}


def opened(page: str = "", **query: str) -> AppTest:
    """A new session on that page; with discovery the first run after a change of page still shows the defaults."""
    at = AppTest.from_file(APP, default_timeout=120)
    for name, word in query.items():
        at.query_params[name] = word
    if page:
        at.switch_page(page)
        at.run()
    return checked(at)


def checked(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception
    return at


def headline(at: AppTest) -> str:
    return next(text.value for text in at.markdown if text.value.startswith("## ")).replace("\\", "")


def charts(at: AppTest) -> list[Any]:
    return [chart.proto for chart in at.get("plotly_chart")]


def said(at: AppTest) -> str:
    return " ".join(box.value.replace("\\", "") for box in [*at.warning, *at.error, *at.info, *at.caption])


def numbers(at: AppTest) -> tuple[str, list[str]]:
    return headline(at), [chart.spec for chart in charts(at)]


LINKS = {
    "toy": {**TOY, "policy": "window:budget=4"},
    "rolling": {**TOY, "policy": "rolling:budget=4", "b_policy": "streaming:budget=8,sinks=4"},
    "one-token": {"tokens": "1"},
    "unicode": {"text": "unicode", "tokens": "388", "policy": "window:budget=32"},
    "bad": BAD,
    "contradiction": {**SHORT, "policy": "streaming:budget=4,sinks=9"},
    "far-away": {**SHORT, "b_policy": "random:budget=0", "layer": "400", "head": "400", "query": "5000"},
    "huge-budget": {**SHORT, "policy": "window:budget=999999", "prompt_tokens": "90"},
    "model": {**SHORT, "model": "no-such-model", "dtype": "bfloat16"},
}
# every link on the page with the most figures; what a page does with too little or too much is its own
WHERE = [(CACHE, name) for name in LINKS]
WHERE += [(page, name) for page in PAGES if page != CACHE for name in ("one-token", "far-away")]


@pytest.mark.parametrize(("page", "name"), WHERE)
def test_a_page_shows_figures_whatever_the_link(page: str, name: str) -> None:
    """Known fault 149: an unknown model ends in a traceback or in endless waiting."""
    at = opened(page, **LINKS[name])
    assert headline(at) and len(charts(at)) >= 1


def test_a_bad_link_is_answered_word_by_word() -> None:
    at = opened(START, **BAD)  # elsewhere the run after the change of page has taken the notes away
    assert headline(at) and len(charts(at)) >= 1
    for word in ("windw", "tokens='-3'", "layer='999999'", "pink", "The text in this link is damaged"):
        assert word in said(at)


# up to 512 tokens nothing is pooled; the maps of 640 are. The maps of Sinks are of 16 tokens anyway.
@pytest.mark.parametrize(
    ("page", "tokens"), [(START, 256), (ATTENTION, 512), (CACHE, 512), (SINKS, 256), (ATTENTION, 640)]
)
def test_a_page_weighs_less_than_five_megabytes(page: str, tokens: int) -> None:
    """Known fault 167: figures are so large that the connection breaks."""
    at = opened(page, text="language-reference", tokens=str(tokens))
    components = [len(part.proto.json) for part in at.get("bidi_component")]
    assert len(charts(at)) >= 1
    assert sum(len(chart.spec) for chart in charts(at)) + sum(components) < 5e6


@pytest.mark.parametrize("page", PAGES)
def test_a_repeated_setting_computes_nothing(page: str) -> None:
    """Known fault 163: every rerun computes everything again."""
    at = opened(page, **SHORT, policy="window:budget=9")
    before = WORKER.computed
    again, other = checked(at), opened(page, **SHORT, policy="window:budget=9")
    assert WORKER.computed == before
    assert numbers(again) == numbers(other)


def test_pages_share_the_runs_of_one_setting() -> None:
    opened(START, **SHORT, policy="window:budget=11")
    before = WORKER.computed
    for page in (ATTENTION, CACHE):
        opened(page, **SHORT, policy="window:budget=11")
    assert WORKER.computed == before
    opened(SINKS, **SHORT, policy="window:budget=11")
    assert WORKER.computed <= before + 2  # what the Sinks page asks for besides: its board and its sentences


def test_two_sessions_keep_their_own_settings_and_results() -> None:
    """Known fault 162: what one user sets shows up at another's."""
    one = opened(CACHE, **SHORT, policy="window:budget=6")
    two = opened(CACHE, **SHORT, policy="streaming:budget=10,sinks=3")
    first, second = numbers(one), numbers(two)
    assert "holds 6 of 40 tokens: the 6 latest" in first[0]
    assert "holds 10 of 40 tokens: 3 sinks and the 7 latest" in second[0]
    assert numbers(checked(one)) == first and numbers(checked(two)) == second


def test_nothing_large_stays_in_the_session() -> None:
    """Known fault 160: results stay in sessions whose tab was closed long ago."""
    at = opened(ATTENTION, text="story", tokens="256")
    stored = at.session_state._state
    values = [stored[key] for key in stored.filtered_state]
    assert sum(len(repr(value)) for value in values) < 40_000  # the text itself is 2 kB
    assert not {type(value).__module__.partition(".")[0] for value in values} & {"numpy", "torch", "plotly"}


def test_the_toy_shows_the_papers_examples() -> None:
    cache = opened(CACHE, **TOY, policy="window:budget=4")
    table = next(text.value for text in cache.markdown if text.value.startswith("| token read"))
    assert "| 8 | [4, 5, 6, 7] → [5, 6, 7, 8] | 4 |" in table
    assert "| 9 | [5, 6, 7, 8] → [6, 7, 8, 9] | 5 |" in table
    assert any("counted from 1, as the papers do" in text.value for text in cache.markdown)

    sinks = opened(CACHE, **TOY, policy="streaming:budget=8,sinks=4")
    table = next(text.value for text in sinks.markdown if text.value.startswith("| token read"))
    assert "→ [1, 2, 3, 4, 9, 10, 11, 12] | 8 |" in table

    ring = opened(CACHE, **TOY, policy="rolling:budget=4")
    table = next(text.value for text in ring.markdown if text.value.startswith("| token read"))
    assert "slot = token mod 4" in table and "| [4, 5, 6, 7] → [5, 6, 7, 8] | 4 | 0 |" in table

    attention = opened(ATTENTION, **TOY, policy="window:budget=4", attention_part="seen")
    words = attention.main.code[0].value
    for line in ("query  8 sees 5–8", "query  9 sees 6–9", "query 10 sees 7–10"):
        assert line in words


def test_an_empty_paste_keeps_the_last_picture_and_says_what_to_do() -> None:
    at = opened(CACHE, **SHORT)
    before = numbers(at)
    at.selectbox(key="s.text").select(PASTE)
    checked(at)
    assert "There is no pasted text yet: write or paste at least one word." in said(at)
    assert numbers(at) == before


def test_a_pasted_text_travels_in_the_link_and_outlives_a_preset() -> None:
    hostile = 'one </s> <script>alert("x")</script> 刚 😀 \x07 $x$ | *two*'
    at = opened(CACHE, **SHORT)
    at.selectbox(key="s.text").select(PASTE)
    checked(at).text_area(key="s.paste").input(hostile)
    pasted = numbers(checked(at))
    link = dict(at.query_params)
    at.selectbox(key="s.text").select("story")
    assert numbers(checked(at)) != pasted
    at.selectbox(key="s.text").select(PASTE)
    assert numbers(checked(at)) == pasted
    word = link["text"][0] if isinstance(link["text"], list) else link["text"]
    assert word.startswith("z:")
    assert numbers(opened(CACHE, text=word, tokens="40")) == pasted


def test_a_long_text_is_asked_for_where_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(0)
    long = " ".join(str(draw.randrange(10**9)) for _ in range(2000))
    at = opened(CACHE, **SHORT)
    at.selectbox(key="s.text").select(PASTE)
    checked(at).text_area(key="s.paste").input(long)
    shown = numbers(checked(at))
    word = Text(long).spell()
    assert word.startswith("sha256:")
    assert numbers(opened(CACHE, text=word, tokens="40")) == shown  # this server knows it
    monkeypatch.setattr(runs, "known_texts", {})
    asked = opened(CACHE, text=word, tokens="40")
    assert "paste or upload that text" in said(asked)
    asked.text_area(key="s.paste").input(long)
    assert numbers(checked(asked)) == shown


PARTS_OF = {ATTENTION: ATTENTION_PARTS, CACHE: CACHE_PARTS, SINKS: SINKS_PARTS}
WORD = {ATTENTION: "attention_part", CACHE: "cache_part", SINKS: "sinks_part"}


@pytest.mark.parametrize("page", PARTS_OF)
@pytest.mark.parametrize("name", ["one-token", "far-away"])
def test_every_part_of_a_page_opens_and_travels_in_the_link(page: str, name: str) -> None:
    at, seen = opened(page, **LINKS[name]), set()
    for part in PARTS_OF[page]:
        at.segmented_control(key=WORD[page]).set_value(part)
        seen.add(str([chart.spec for chart in charts(checked(at))]) + str([text.value for text in at.markdown]))
        is_first = part == next(iter(PARTS_OF[page]))
        assert (WORD[page] in at.query_params) != is_first and (is_first or part in at.query_params[WORD[page]])
    assert len(seen) == len(PARTS_OF[page])


def test_what_is_not_open_is_not_computed() -> None:
    """Every figure of a page was computed and sent, also those far below what anybody saw."""
    at = opened(SINKS, **SHORT, policy="window:budget=12")
    before = WORKER.computed
    assert len(charts(at)) == 2
    at.segmented_control(key="sinks_part").set_value("ablation")
    assert len(charts(checked(at))) == 1 and WORKER.computed == before + 1


def test_from_a_chosen_query_there_is_a_way_back_to_the_last_one() -> None:
    at = opened(ATTENTION, **SHORT, query="7")
    assert "Token 7 " in headline(at)
    next(button for button in at.button if button.label == "Back to the last query").click()
    assert "Token 39 " in headline(checked(at)) and "query" not in at.query_params
    assert not [button for button in at.button if button.label == "Back to the last query"]
    assert "The text has no position 5000; its last token is shown." in said(opened(ATTENTION, **SHORT, query="5000"))


def test_a_new_policy_keeps_the_budget() -> None:
    at = opened(CACHE, **SHORT, policy="window:budget=7")
    for name in ("rolling", "random", "streaming"):
        at.selectbox(key="a.policy").select(name)
        assert "holds 7 of 40" in headline(checked(at))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff\xfe\x00", "The file is not UTF-8 text: byte 0"),
        (b"", "The file is empty"),
    ],
)
def test_a_bad_upload_is_one_sentence(data: bytes, sentence: str) -> None:
    at = opened(CACHE, **SHORT)
    before = numbers(at)
    at.selectbox(key="s.text").select("upload")
    checked(at).file_uploader(key="upload").upload("notes.txt", data, "text/plain")
    checked(at)
    assert sentence in said(at) and numbers(at) == before


def test_a_file_that_is_taken_out_is_said_to_be_in_use_still() -> None:
    at = opened(CACHE, **SHORT)
    at.selectbox(key="s.text").select("upload")
    checked(at).file_uploader(key="upload").upload("notes.txt", b"Once there was a cache. " * 9, "text/plain")
    shown = numbers(checked(at))
    assert "still in use" not in said(at)
    at.file_uploader(key="upload").set_value([])
    assert "The text given before (216 characters) is still in use" in said(checked(at)) and numbers(at) == shown


def test_a_fraction_in_a_number_field_is_refused_in_a_sentence() -> None:
    at = opened(CACHE, **SHORT, policy="window:budget=7", b_policy="random:budget=7", prompt_tokens="20")
    for field in ("a.policy.budget", "s.prompt", "layer", "s.seed", "s.tokens"):
        before = numbers(at)
        at.number_input(key=field).set_value(5.7)
        checked(at)
        assert "=5.7 must be a whole number from " in said(at) and numbers(at) == before, field
        at.number_input(key=field).set_value(6)
        checked(at)
        assert "must be a whole number" not in said(at) and numbers(at) != before, field


# all on one page, the telling ones on the others
CHOSEN = [(CACHE, name) for name in POLICIES]
CHOSEN += [(page, name) for page in PAGES if page != CACHE for name in TELLING]


@pytest.mark.parametrize(("page", "name"), CHOSEN)
def test_every_policy_can_be_chosen_as_a_and_as_b(page: str, name: str) -> None:
    small = {"budget": 9, "sinks": 2, "recent": 3, "observe": 4, "kernel": 3}
    policy = POLICIES[name](**{f.name: small[f.name] for f in fields(POLICIES[name]) if f.name in small})
    text = {**SHORT, "tokens": "20"} if policy.recomputes else SHORT  # a window of forwards for every token
    at = opened(page, **text, policy=spell(policy), b_policy=spell(policy), storage="int4:group=4,residual=8")
    assert len(charts(at)) >= 1 and not at.error and not at.warning
    assert type(policy).title.partition(":")[0] in headline(at) or "nothing has been evicted" in headline(at)


def test_the_cache_page_counts_all_layers_at_the_end() -> None:
    """Of a prompt of 20 tokens each layer keeps its own budget; the 20 tokens after it are added."""
    at = opened(CACHE, policy="pyramidkv:budget=8,observe=4", cache_part="layers", **SHORT)
    shares = budgets(8, 4, 20, 30, 20)
    said_of_a = f"Under A a KV head holds {shares[-1] + 20} to {shares[0] + 20} entries, depending on the layer"
    assert any(said_of_a in text.value for text in at.markdown)
    assert any(
        "Under B a KV head holds 40 entries in every layer; two KV heads of a layer share 100%" in text.value
        for text in at.markdown
    )
