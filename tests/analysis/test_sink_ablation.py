from __future__ import annotations

import numpy as np
import pytest

from kvviz.analysis.sink_ablation import ablate_sinks, ablations
from kvviz.run.progress import Cancelled
from kvviz.run.replay import replay
from tests.tiny import some_ids, tiny

IDS = some_ids(40).tolist()
ASKED = {"budget": 10, "sinks": 2, "prompt_tokens": 20, "line_break": 5}


def test_every_row_is_scored_on_the_same_tokens_and_only_one_has_other_first_tokens() -> None:
    outcomes = ablate_sinks(tiny("llama"), IDS, **ASKED)
    for outcome, (name, setup, is_replaced) in zip(outcomes, ablations(10, 2), strict=True):
        ids = [5, 5, *IDS[2:]] if is_replaced else IDS
        alone = replay(tiny("llama"), ids, setup, prompt_tokens=20)
        assert outcome.name == name and outcome.loss == pytest.approx(float(np.mean(alone.nll[19:])), abs=1e-12)
        assert len(alone.nll[19:]) == 20
    assert [is_replaced for _, _, is_replaced in ablations(10, 2)].count(True) == 1
    assert len({outcome.cache_bytes for outcome in outcomes if "window" in outcome.name}) == 1  # one budget


def test_progress_grows_over_all_rows_and_a_stop_is_heard() -> None:
    told: list[float] = []
    ablate_sinks(tiny("llama"), IDS, **ASKED, progress=lambda what, share: told.append(share))
    assert told == sorted(told) and told[-1] == 1
    with pytest.raises(Cancelled):
        ablate_sinks(tiny("llama"), IDS, **ASKED, is_cancelled=lambda: True)


@pytest.mark.parametrize("prompt", [2, 40])
def test_a_text_without_anything_to_score_is_refused(prompt: int) -> None:
    with pytest.raises(ValueError, match=f"prompt of {prompt} of 40 tokens"):
        ablate_sinks(tiny("llama"), IDS, **(ASKED | {"prompt_tokens": prompt}))
