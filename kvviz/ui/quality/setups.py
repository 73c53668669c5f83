"""The setups that the page compares: A and B of the sidebar, and those a visitor adds."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from kvviz.choices.setup import Setup, read_setup, spelled
from kvviz.figures.theme import LINES, LineName
from kvviz.ui.quality.settings import ADDED_LIMIT, QualitySettings, parse_added, separate
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.shell.words import plain, setup_words, side_words

# what the menu offers; anything else can be typed as on the command line
OFFERED = (
    "full",
    "window",
    "streaming:budget={0},sinks=4",
    "streaming:budget={0},sinks=4 slot",
    "h2o",
    "attention_window",
    "tova",
    "snapkv",
    "pyramidkv",
    "knorm",
)
MENU, PROBLEM = "added.menu", "added.problem"  # keys of the session
COMMON_BUDGET = 64
OBSERVING = ("snapkv", "pyramidkv", "attention_window")


@dataclass(frozen=True)
class Named:
    """A setup and the letter of its line."""

    letter: LineName
    setup: Setup

    @property
    def label(self) -> str:
        return side_words(self.letter.upper(), self.setup)


def compared(view: View) -> list[Named]:
    """A, B and the added ones, at most eight; an added one that is A or B already is left out."""
    sides = [view.experiment.setup, view.versus]
    added = [read_setup(line) for line in separate(view.of(QualitySettings).added)]
    more = [setup for setup in dict.fromkeys(added) if setup not in sides]
    return [Named(letter, setup) for letter, setup in zip(LINES, [*sides, *more], strict=False)]


def menu(view: View) -> None:
    """A field that offers setups and takes others as they are spelled on the command line."""
    link = kept_setting(QualitySettings, "added")["key"]
    chosen = separate(str(st.session_state[link]))
    st.session_state[MENU] = chosen
    st.multiselect(
        "Setups beside A and B",
        list(dict.fromkeys([*chosen, *offered(view)])),
        format_func=words_of,
        key=MENU,
        on_change=take,
        args=(link,),
        accept_new_options=True,
        max_selections=ADDED_LIMIT,
        placeholder="Choose, or write as on the command line: h2o:budget=64",
        help=f"At most {ADDED_LIMIT}, a line each. {meaning('policy', 'budget')}",
    )
    if problem := st.session_state.pop(PROBLEM, ""):
        st.error(plain(problem))


def take(link: str) -> None:
    """Adopt what the field holds; what is not understood is left out, with a sentence."""
    good = []
    for line in st.session_state[MENU]:
        try:
            good.append(parse_added(line))
        except ValueError as error:
            st.session_state[PROBLEM] = str(error)
    st.session_state[link] = "; ".join(dict.fromkeys(good))


def offered(view: View) -> list[str]:
    """The menu's setups with the budget of A, or of B, or a common one."""
    sizes = [setup.policy.size for setup in (view.experiment.setup, view.versus)]
    budget = next((size for size in sizes if size is not None), COMMON_BUDGET)
    found = []
    for line in OFFERED:
        try:
            found.append(spelled(read_setup(with_budget(line, budget))))
        except ValueError:
            continue  # a budget too small for this policy
    sides = {spelled(view.experiment.setup), spelled(view.versus)}
    return [line for line in found if line not in sides]


def with_budget(line: str, budget: int) -> str:
    if line == "full" or "{0}" in line:
        return line.format(budget)
    return f"{line}:budget={budget}" + f",observe={min(32, budget // 2)}" * (line in OBSERVING)


def words_of(line: str) -> str:
    """An entry of the menu in words; one that is just being written stays as it is."""
    try:
        return setup_words(read_setup(line))
    except ValueError:
        return line
