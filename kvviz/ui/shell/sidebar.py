"""The sidebar of every page: text, length, A and B with the knobs their choices name, and the place one looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import streamlit as st

from kvviz.choices import texts
from kvviz.choices.experiment import TOKENS_LIMIT, Experiment
from kvviz.choices.linked_text import Text
from kvviz.choices.setup import SETUP_PARSERS, Setup
from kvviz.knobs import Choice, describe_knobs, spell_value
from kvviz.models import DEFAULT_MODEL
from kvviz.ui.shell import runs
from kvviz.ui.shell.glossary import knob_meaning, meaning
from kvviz.ui.shell.menus import MENUS
from kvviz.ui.shell.model_card import dtype_here
from kvviz.ui.shell.number_fields import numbers_in, still_in_use, whole_number
from kvviz.ui.shell.settings import PASTE, UPLOAD, settings_of_pages
from kvviz.ui.shell.state import MOST_PLACES, View, kept, knob_key, setting
from kvviz.ui.shell.words import plain

SEED_LIMIT = 2**31 - 1
SEED_WORDS = "The seed of every random choice; changing it also sets the seed of random eviction under A and B."


@dataclass
class Sidebar:
    """Draws the controls and makes a View of them; what is wrong with them is said beside them and in ``problems``."""

    problems: list[str]

    def draw(self) -> View:
        with st.sidebar:
            text = self.text()
            tokens, prompt_tokens = self.length()
            setup = self.setup("a", f"{MENUS['policy'][0]} A", View().experiment.setup)
            versus = self.setup("b", "Compare with B", View().versus)
            layer, head, seed = self.place()
        model = setting("s.model", DEFAULT_MODEL)
        experiment = Experiment(
            setup=setup,
            text=text,
            tokens=tokens,
            prompt_tokens=prompt_tokens,
            model=model,
            dtype=dtype_here(model),
            generate_tokens=setting("s.generate", 0),
            seed=seed,
        )
        own = tuple(page.from_widgets(setting) for page in settings_of_pages())
        return View(experiment, versus, layer, head, setting("query", None), own)

    def text(self) -> Text:
        """A preset, a pasted text or an uploaded one; the last good text stays while the new one is not."""
        choices = [*texts.PRESETS, PASTE, UPLOAD]
        names = {name: preset.title for name, preset in texts.PRESETS.items()}
        names |= {PASTE: "Paste a text", UPLOAD: "Upload a file (at most 1 MB)"}
        chosen = st.selectbox(
            "Text", choices, format_func=lambda name: names[name], **kept("s.text", texts.DEFAULT_TEXT)
        )
        setting("s.text", chosen)
        if chosen in texts.PRESETS:
            return self.good_text(Text.of_preset(chosen))
        try:
            content = self.pasted() if chosen == PASTE else self.uploaded()
        except ValueError as error:
            return self.fall_back("text", str(error), Text.of_preset(texts.DEFAULT_TEXT))
        if len(content.encode()) > 2000:
            runs.remember_text(content)
        return self.good_text(Text(content))

    def pasted(self) -> str:
        content = st.text_area("Your text", **kept("s.paste", ""), height=160, max_chars=texts.MAX_UPLOAD_BYTES)
        setting("s.paste", content)
        if not content:
            asked = st.session_state.get("asked")
            raise ValueError(asked or "There is no pasted text yet: write or paste at least one word.")
        return content

    def uploaded(self) -> str:
        file = st.file_uploader("Text file, UTF-8", key="upload", max_upload_size=1)
        if file is not None:
            st.session_state["good"]["upload"] = texts.from_upload(file.getvalue())
        content = str(st.session_state["good"].get("upload", ""))
        if not content:
            raise ValueError("There is no uploaded text yet: choose a file.")
        if file is None:
            st.caption(still_in_use("text", content))
        return content

    def good_text(self, text: Text) -> Text:
        st.session_state["good"]["text"] = text
        return text

    def fall_back(self, what: str, problem: str, otherwise: Any) -> Any:
        """Say what is wrong, and go on with what was right before."""
        st.error(problem)
        self.problems.append(f"{problem} The figures still show the previous settings.")
        return st.session_state["good"].get(what, otherwise)

    def length(self) -> tuple[int, int | None]:
        left, right = st.columns(2)
        tokens = self.whole(
            left, "Tokens", "s.tokens", View().experiment.tokens, 1, TOKENS_LIMIT, step=16, help=meaning("token")
        )
        looks = {"placeholder": "half", "help": meaning("prompt")}
        prompt = self.whole(right, "Prompt ends after", "s.prompt", None, 1, TOKENS_LIMIT, **looks)
        if prompt is not None and prompt > tokens:
            problem = f"The prompt cannot end after {prompt} of {tokens} tokens; it ends after half of them instead."
            st.error(problem)
            self.problems.append(problem)
            prompt = None
        return tokens, prompt

    def whole(self, place: Any, label: str, key: str, default: Any, low: int, high: int, **looks: Any) -> Any:
        """A field for one of the page's own numbers; the last good one stays while it holds no whole number."""
        try:
            number = whole_number(place, label, key, default, low, high, **looks)
        except ValueError as error:
            return self.fall_back(key, str(error), default)
        st.session_state["good"][key] = number
        return number

    def setup(self, side: str, label: str, default: Setup) -> Setup:
        """One side's five choices; the four that are seldom changed are folded."""
        first, *others = SETUP_PARSERS
        try:
            chosen = {first: self.choice(side, first, label, default)}
            with st.expander(f"More choices for {side.upper()}"):
                chosen |= {kind: self.choice(side, kind, owned(side, MENUS[kind][0]), default) for kind in others}
            setup = Setup(**chosen)
        except ValueError as error:
            return self.fall_back(side, str(error), default)
        st.session_state["good"][side] = setup
        return setup

    def choice(self, side: str, kind: str, label: str, default: Setup) -> Any:
        """A menu of words; or of classes, and one control for every knob of the chosen one."""
        key, offered, ordinary = f"{side}.{kind}", MENUS[kind][1], getattr(default, kind)
        if not isinstance(ordinary, Choice):
            return self.menu(kind, key, label, offered.__getitem__, ordinary)
        chosen = offered[self.menu(kind, key, label, lambda name: offered[name].title, ordinary.name())]
        fitted = {field.name for field in fields(chosen) if "fit" in field.metadata}
        rows = [row | ({"default": None} if row["name"] in fitted else {}) for row in describe_knobs(chosen)]
        return chosen(**{row["name"]: self.knob(side, kind, row) for row in rows})

    def menu(self, kind: str, key: str, label: str, words: Callable[[str], str], ordinary: str) -> str:
        names, looks = list(MENUS[kind][1]), {"help": meaning(kind), **kept(key, ordinary)}
        unfit = runs.unfit(setting("s.model", DEFAULT_MODEL), kind)

        def shown(name: str) -> str:
            return f"{words(name)} – not on this model" if name in unfit else words(name)

        chosen = str(setting(key, st.selectbox(label, names, format_func=shown, **looks)))
        if chosen in unfit:
            st.caption(plain(unfit[chosen]))
        return chosen

    def knob(self, side: str, kind: str, row: dict[str, Any]) -> Any:
        """A control made from what the knob says of itself."""
        key, default = knob_key(side, kind, row["name"]), row["default"]
        label = owned(side, f"{row['name']}: {row['label']}")
        looks: dict[str, Any] = {"help": knob_meaning(row["name"])}
        if choices := row.get("choices"):
            self.put_within(key, lambda word: word if word in choices else default)
            return setting(key, st.selectbox(label, choices, **kept(key, default)))
        if isinstance(default, tuple):
            listed = setting(key, st.text_input(label, **looks, **kept(key, spell_value(default))))
            return numbers_in(row["name"], listed)
        if isinstance(default, bool):
            return bool(setting(key, st.toggle(label, **kept(key, default))))
        low, high = row["low"], row["high"]
        if side == "b" and row["name"] == "budget":
            default = setting(knob_key("a", kind, "budget"), default)  # equal budgets are the natural comparison
        self.put_within(key, lambda number: None if number is None else min(max(number, low), high))
        # a field and not a slider: on one that reaches a million nobody could aim at 4
        looks |= {"placeholder": "by the budget"} if default is None else {}
        return whole_number(st, label, key, default, low, high, **looks)

    def put_within(self, key: str, moved: Callable[[Any], Any]) -> None:
        """Another choice may have allowed more under the same name."""
        value = st.session_state.get(key, st.session_state["settings"].get(key))
        if value is not None and moved(value) != value:
            st.session_state[key] = moved(value)

    def place(self) -> tuple[int, int, int]:
        left, right = st.columns(2)
        layer = self.whole(left, "Layer", "layer", View().layer, 0, MOST_PLACES, help=meaning("layer"))
        head = self.whole(
            right, "Query head", "head", View().head, 0, MOST_PLACES, help=meaning("query head", "KV head")
        )
        looks = {"help": SEED_WORDS, "on_change": seed_both_sides}
        return layer, head, self.whole(st, "Seed", "s.seed", View().experiment.seed, 0, SEED_LIMIT, **looks)


def owned(side: str, label: str) -> str:
    """``A's budget: keys a query may see``: A and B have fields of the same kind, and a label must tell them apart."""
    return f"{side.upper()}'s {label[:1].lower()}{label[1:]}"


def seed_both_sides() -> None:
    """A new seed is the seed of random eviction under A and B; each may still be given its own."""
    for side in "ab":
        st.session_state[knob_key(side, "policy", "seed")] = st.session_state["s.seed"]
