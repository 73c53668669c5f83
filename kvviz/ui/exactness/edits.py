"""Edit a token: which entries of the cache change, and what appending does where all tokens see all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.figures.exactness import change_map
from kvviz.ui.exactness.common import Asked, job_for
from kvviz.ui.exactness.settings import LONGEST_EDIT, ExactnessSettings
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.shell.words import plain, plural, scientific

if TYPE_CHECKING:
    from kvviz.analysis.exactness.edits import Changes


@dataclass(frozen=True, eq=False)
class Edited:
    """What an edit, and what appending a token, changes."""

    position: int
    before: str  # the token that was there
    after: str  # what stands there now, "" where it was deleted
    labels: tuple[str, ...]
    by_edit: Changes
    by_appending: dict[str, Changes]  # under the causal mask and where all see all

    @property
    def nbytes(self) -> int:
        return self.by_edit.nbytes + sum(one.nbytes for one in self.by_appending.values()) + 80 * len(self.labels)


def draw(view: View) -> None:
    """Both maps, and their sentences."""
    left, middle, right = st.columns(3, vertical_alignment="bottom")
    try:
        position = whole_number(left, "Token to edit (position)", "edit_at", 8, 0, TOKENS_LIMIT)
    except ValueError as error:
        st.error(str(error))
        return
    looks: dict[str, Any] = {"max_chars": LONGEST_EDIT, "placeholder": "another token of the text"}
    middle.text_input("Replace it by", **looks, **kept_setting(ExactnessSettings, "edit"))
    right.toggle("Delete it instead", **kept_setting(ExactnessSettings, "deletes"))
    chosen = view.of(ExactnessSettings)
    how = (position, chosen.edit, chosen.deletes)

    def compute(given: Asked, job: Job) -> Edited:
        return edited(given, *how, view.experiment.text.count_from)

    if found := waiting.extra(*job_for(view, "edit", "reads both texts", compute, *how), st.empty()):
        said: Edited = found.value
        columns = st.columns(2)
        with columns[0]:
            st.markdown(plain(edit_words(said)))
            labels = list(said.labels[: said.by_edit.keys.shape[1]])
            show(drawn(change_map, said.by_edit.either, labels, title="Entries changed by the edit"), "changed-entries")
        with columns[1]:
            st.markdown(plain(append_words(said)))
            title = "Entries changed by one more token, if all saw all"
            shown = said.by_appending["bidirectional"].either
            show(drawn(change_map, shown, list(said.labels[: shown.shape[1]]), title=title), "changed-by-appending")


def edited(given: Asked, position: int, replacement: str, deletes: bool, count_from: int) -> Edited:
    """Read the text, the edited one, and the one with a token appended."""
    from kvviz.analysis.exactness.edits import changes_by_appending, changes_by_edit
    from kvviz.analysis.exactness.edits import edited as edited_ids
    from kvviz.analysis.exactness.reuse import other_token
    from kvviz.models.tokens import encode, labels

    ids, tokenizer = given.ids.tolist(), given.loaded.tokenizer
    spot = min(position, len(ids) - 1)
    new = [other_token(ids, spot)] if not replacement else encode(tokenizer, replacement, LONGEST_EDIT)
    after = edited_ids(ids, position, [] if deletes else new)
    return Edited(
        position,
        labels(tokenizer, ids[spot : spot + 1])[0],
        "" if deletes else " ".join(labels(tokenizer, new)),
        given.labels(count_from),
        changes_by_edit(given.model, ids, after),
        changes_by_appending(given.model, ids, other_token(ids, 0)),
    )


def edit_words(found: Edited) -> str:
    """Which entries changed, in numbers."""
    what = f"‘{found.before}’ replaced by ‘{found.after}’" if found.after else f"‘{found.before}’ deleted"
    changed, at = found.by_edit.changed, found.position
    if not changed.any():
        return f"At position {at} {what}: no entry changes."
    deeper, later, before = changed[1:, at:], int(changed[0, at:].sum()), int(changed[:, :at].sum())
    every = "all" if deeper.all() else f"{int(deeper.sum()):,} of"
    lowest = "only its own" if later == 1 else plural(later, "entry")
    return (
        f"At position {at} {what}: from layer 1 on {every} {deeper.size:,} entries from there to the end change, in "
        f"layer 0 {lowest}; before it {before or 'none'}. So a cache can be kept up to the first changed token and no "
        "further."
    )


def append_words(found: Edited) -> str:
    """What appending one token does under both masks."""
    causal, both = found.by_appending["causal"], found.by_appending["bidirectional"]
    changed = both.changed[1:]
    return (
        f"One token appended: under the causal mask {int(causal.changed.sum()) or 'no'} old entries change (largest "
        f"change {scientific(float(causal.either.max()))}), so all may be kept. If every token saw every other, "
        f"{'all' if changed.all() else f'{int(changed.sum()):,} of'} {changed.size:,} old entries above layer 0 would "
        f"change, by {np.median(both.either[1:]):.2g} of their length in the median: nothing could have been kept."
    )
