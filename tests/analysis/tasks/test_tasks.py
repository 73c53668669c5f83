"""Quality tasks: prompts of the exact length with a known answer, and what is said of a miss."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kvviz.analysis.tasks import TASKS, VARIANTS, Task
from kvviz.analysis.tasks.base import Prompt, placed
from kvviz.analysis.tasks.scoring import Cell, Grid, check_task, finds_enough, grid, scored
from kvviz.choices.setup import Setup, parse_setup
from kvviz.measures.interval import wilson
from kvviz.run.replay import replay
from tests.tiny import some_ids, tiny

FILLER = list(range(1000, 4000))


def encode(text: str) -> list[int]:
    """A token a character."""
    return [ord(sign) for sign in text]


def read(ids: list[int] | tuple[int, ...]) -> str:
    return "".join(chr(i) if i < 1000 else "·" for i in ids)


@pytest.mark.parametrize("tokens", [700, 901])
@pytest.mark.parametrize("depth", [0, 33, 100])
@pytest.mark.parametrize("task", [*TASKS.values(), *VARIANTS.values()], ids=lambda task: task.name)
def test_a_prompt_has_the_length_asked_for_and_is_the_same_again(task: Task, depth: int, tokens: int) -> None:
    prompt = task.prompt(encode, FILLER, tokens, depth, seed=3)
    assert len(prompt.ids) == tokens and prompt == task.prompt(encode, FILLER, tokens, depth, seed=3)
    assert prompt.ids != task.prompt(encode, FILLER, tokens, depth, seed=4).ids
    assert 0 < prompt.prompt_tokens <= min(prompt.answers) + (0 if task.is_scored else tokens)
    assert max(prompt.answers) < tokens and all(place < prompt.answers[0] for place in prompt.needle)


@pytest.mark.parametrize("name", ["passkey", "multikey", "pairs", "pairs_asked_first", "questions"])
def test_the_needle_holds_the_answer_and_nothing_else_does(name: str) -> None:
    prompt = {**TASKS, **VARIANTS}[name].prompt(encode, FILLER, 900, 50, seed=1)
    answers = re.findall(r"\d+", read([prompt.ids[i] for i in prompt.answers]))
    needle = read([prompt.ids[i] for i in prompt.needle])
    assert answers
    if name == "questions":
        answer = read([prompt.ids[i] for i in prompt.answers])
        numbers = sorted(set(re.findall(r"\d+", needle)))
        assert sorted(answer.replace(" ", "")) == sorted("".join(numbers))
        assert not any(number in read(prompt.ids[prompt.prompt_tokens : prompt.answers[0]]) for number in numbers)
    else:
        assert read(prompt.ids[: prompt.answers[0]]).count(answers[0]) == 1 and answers[0] in needle


def test_depth_moves_the_needle() -> None:
    first = [TASKS["passkey"].prompt(encode, FILLER, 600, depth, 0).needle[0] for depth in (0, 50, 100)]
    assert first[0] == 0 and first == sorted(first) and first[2] > 400
    lines = [TASKS["pairs"].prompt(encode, FILLER, 600, depth, 0).needle[0] for depth in (0, 50, 100)]
    assert lines == sorted(lines) and len(set(lines)) == 3


def test_parts_stand_where_they_were_put() -> None:
    assert placed([[7, 8], [9]], [0, 1, 2, 3], (25, 100)) == ([0, 7, 8, 1, 2, 3, 9], [range(1, 3), range(6, 7)])


def test_induction_is_the_same_text_twice() -> None:
    prompt = TASKS["induction"].prompt(encode, FILLER, 201, 0, 0)
    assert prompt.ids[1:101] == prompt.ids[101:]
    assert [prompt.ids[i] for i in prompt.needle] == [prompt.ids[i] for i in prompt.answers]


PROMPT = Prompt(ids=tuple(some_ids(12).tolist()), answers=(10, 11), needle=(2, 3), prompt_tokens=10)


@pytest.mark.parametrize(("words", "held"), [({}, 1.0), ({"policy": "window:budget=4"}, 0.0)])
def test_a_miss_was_forgotten_or_not_found(words: dict[str, str], held: float) -> None:
    """A policy that surely keeps the needle, and one that surely drops it."""
    trace = replay(tiny("llama"), PROMPT.ids, parse_setup(words), prompt_tokens=10)
    cell = scored(trace, PROMPT, TASKS["passkey"], 50, 0)
    assert cell.held == held and cell.answer_loss == pytest.approx(trace.nll[[9, 10]].mean())


@pytest.mark.parametrize(("hits", "found"), [([True, True], True), ([True, False], False), ([False, False], False)])
def test_every_answer_token_must_be_the_likeliest(hits: list[bool], found: bool) -> None:
    trace = replay(tiny("llama"), PROMPT.ids, Setup(), prompt_tokens=10)
    likeliest = np.ones(11, dtype=bool)
    likeliest[[9, 10]] = hits
    vars(trace)["is_likeliest"] = likeliest
    assert scored(trace, PROMPT, TASKS["passkey"], 50, 0).found is found
    assert scored(trace, PROMPT, TASKS["induction"], 50, 0).found is any(hits)  # half of them are enough
    assert scored(trace, PROMPT, TASKS["stream"], 50, 0).found is None


def test_likeliest_is_what_greedy_decoding_would_write() -> None:
    ids = some_ids(20).tolist()
    trace = replay(tiny("llama"), ids, Setup(), block=7)
    assert trace.is_likeliest is not None
    logits = tiny("llama")(input_ids=some_ids(20)[None], use_cache=False).logits[0]
    assert trace.is_likeliest.tolist() == (logits[:-1].argmax(-1) == some_ids(20)[1:]).tolist()


def test_a_task_is_void_where_the_full_cache_fails() -> None:
    cells = [Cell(0, seed, seed > 0, 1.0, 1.0) for seed in range(20)]
    whole = Grid(TASKS["passkey"], 256, tuple(cells))
    assert whole.found == 19 and not whole.is_void
    assert Grid(TASKS["passkey"], 256, tuple(cells[:19])).is_void


def test_wilson_by_hand() -> None:
    """8 of 10: (0.8 + 0.19207 ± 1.96 · √(0.016 + 0.0096)) / 1.38415."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    with pytest.raises(ValueError, match="3 of 2 tries is no share"):
        wilson(3, 2)


@pytest.mark.parametrize(
    ("tokens", "depths", "seeds", "sentence"),
    [
        (20, [0], 1, "20 tokens are too few for passkey"),
        (200, [0, 120], 1, "depth 120 must be from 0"),
        (200, [-1], 1, "depth -1 must be from 0"),
        (200, [0], 0, "at least one depth and one seed"),
    ],
)
def test_what_makes_no_prompt_is_refused(tokens: int, depths: list[int], seeds: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_task(TASKS["passkey"], tokens, depths, seeds)


def test_depths_that_share_a_text_share_its_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    from kvviz.analysis.tasks import scoring

    count = []
    monkeypatch.setattr(scoring, "replay", lambda *args, **more: count.append(1) or replay(*args, **more))
    found = grid(
        tiny("llama"),
        encode,
        some_ids(60).tolist(),
        TASKS["induction"],
        Setup(),
        tokens=90,
        depths=[0, 50, 100],
        seeds=2,
    )
    assert len(count) == 2 and [(cell.depth, cell.seed) for cell in found.cells] == [
        (depth, seed) for seed in (0, 1) for depth in (0, 50, 100)
    ]


def test_the_list_asked_first_is_the_list_with_the_question_before_it() -> None:
    plain, first = (
        read(task.prompt(encode, FILLER, 700, 50, 1).ids) for task in (TASKS["pairs"], VARIANTS["pairs_asked_first"])
    )
    name = plain.rpartition("\n")[2].partition(":")[0]
    assert plain.count(name) == 2  # in its line, and where it is asked for
    asked = first.rpartition("\n")[2].partition(":")[0]
    assert first.count(asked) == 4 and first.index(asked) < first.index("Phone numbers")


@pytest.mark.parametrize(
    ("hits", "share", "enough", "asked"),
    [
        ("1100", 0.5, True, 2),
        ("0001", 0.5, False, 3),
        ("0101", 0.5, True, 4),
        ("1110", 1.0, False, 4),
        ("0111", 1.0, False, 1),
    ],
)
def test_no_more_is_asked_than_it_takes_to_know(hits: str, share: float, enough: bool, asked: int) -> None:
    count: list[int] = []
    cells = (count.append(1) or Cell(0, seed, hit == "1", 1.0, 1.0) for seed, hit in enumerate(hits))
    assert finds_enough(cells, len(hits), share) is enough and len(count) == asked
