"""The run report of A: the same as ``python -m kvviz report``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.ui.shell import runs
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.state import View
from kvviz.ui.speed.steps import machine

WHOLE_TEXT = 10**9  # tokens, more than the text has


@dataclass(frozen=True)
class Report:
    """What was measured, and the same for people."""

    report: dict[str, Any]
    markdown: str
    bytes: int = 20_000


def report_job(view: View, prompt: int, new: int, repeats: int) -> tuple[Key, Callable[[Job], Report]]:
    """The report of A's setup on the language reference."""
    name, setup = view.experiment.model, view.experiment.setup

    def compute(job: Job) -> Report:
        if setup.policy.recomputes:
            raise ValueError("Re-computation has no cache to report on; choose another policy for A.")
        loaded = runs.loaded_model(name, job.tell)
        if reason := runs.refusal(loaded, setup):
            raise ValueError(reason)
        from kvviz.analysis.report import run_report
        from kvviz.analysis.report_words import report_markdown
        from kvviz.models.tokens import encode

        filler = encode(loaded.tokenizer, PRESETS[LONG_TEXT].text(), WHOLE_TEXT)
        told = 0

        def tell(what: str) -> None:
            nonlocal told
            told += 1
            job.report(f"run report: {what}", told / (repeats + 8))

        report = run_report(
            loaded,
            setup,
            ids=filler[:prompt],
            max_new_tokens=new,
            repeats=repeats,
            encode=lambda text: encode(loaded.tokenizer, text, WHOLE_TEXT),
            filler=filler,
            tell=tell,
        )
        return Report(report, report_markdown(report))

    return ("report", name, prompt, new, repeats, *machine(), str(setup)), compute
