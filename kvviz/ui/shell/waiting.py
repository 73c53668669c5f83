"""Waiting for a run: progress where the figure will be, a way to stop it, and else the last figures.

The session remembers which results it showed last by their keys; the results themselves stay with the worker.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from kvviz.choices.experiment import Experiment
from kvviz.figures import Drawing
from kvviz.figures.frame import coming
from kvviz.ui.shell import runs
from kvviz.ui.shell.chart import chart
from kvviz.ui.shell.disk_results import Stamp
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.runs import WORKER, Key, Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain

# A run that ends sooner shows no progress: drawing it takes processor time that the run needs.
QUICK_SECONDS = 0.3  # where there is no figure yet
PATIENT_SECONDS = 1.5  # where the last one still stands there, greyed
POLL_SECONDS = 0.25
DRAW_SECONDS = 1.0  # what a result grows by between two drawings; more often would slow it down
ATTEMPTS = 3  # a shared run may be broken off for another page just as this one joins it


def runs_or_last(view: View, experiments: list[Experiment], needs_maps: bool, slot: Any) -> tuple[View, list[Run]]:
    """The runs of the experiments and the view they belong to; after a stop or an error those shown last.

    Ends the page with a sentence in ``slot`` when there is neither.
    """
    keys = [runs.key_for(experiment, view.layer, needs_maps) for experiment in experiments]
    if keys in stopped():
        return last_shown(slot, "This run was stopped.", needs_maps)
    for others in [one for one in stopped() if isinstance(one[0][0], Experiment)]:
        stopped().remove(others)  # of another setting; a further computation stays stopped
    frame = None if "shown" in st.session_state else coming()
    jobs, error = waited(lambda: runs.jobs_for(owner(), experiments, keys), keys, slot, "runs", frame)
    if error is not None:
        return last_shown(slot, runs.sentence(error), needs_maps)
    st.session_state["shown"] = (view, keys)
    return view, [job.result for job in jobs]


def extra(key: Key, compute: Callable[[Job], Any], slot: Any) -> Any | None:
    """The result of a further computation once the runs of A and B are there; None where it was stopped or failed.

    Its progress, its Cancel and its sentence stand in ``slot``; the result must have ``bytes``.
    """
    return extras([(key, compute)], slot)[0]


def extras(
    wanted: Sequence[tuple[Key, Callable[[Job], Any]]], slot: Any, meanwhile: Callable[[], None] | None = None
) -> list[Any | None]:
    """The results of several, each a job of its own; None for those that were stopped or failed.

    At most once a second while it waits it calls ``meanwhile``, which draws what is there already:
    ``WORKER.result(key)`` or ``WORKER.partial(key)``.
    """
    keys = [key for key, _ in wanted]
    if keys in stopped():
        say(slot, "This was stopped.", keys)
        return [WORKER.result(key) for key in keys]
    name = str(keys[0][0])
    jobs, error = waited(lambda: WORKER.want(owner(), wanted), keys, slot, name, meanwhile=meanwhile)
    stamps = [job.stamp for job in jobs if job.stamp is not None]
    if error is not None:
        say(slot, runs.sentence(error), keys)
    elif stamps:
        slot.caption(stamp_words(min(stamps, key=lambda stamp: stamp.seconds)))
    return [job.result for job in jobs]


def asked(key: Key, label: str) -> bool:
    """Whether this was asked for, or is there already; else a button that asks for it."""
    if runs.WORKER.result(key) is not None or st.session_state.get(f"asked.{key[0]}") == key:
        return True
    st.button(label, key=f"ask.{key[0]}", on_click=ask, args=(key,))
    return False


def ask(key: Key) -> None:
    st.session_state[f"asked.{key[0]}"] = key
    st.session_state.pop("cancelled", None)


def stamp_words(stamp: Stamp) -> str:
    """When and where a result was computed that was not computed now."""
    where = "on this machine" if stamp.is_here else "on another machine"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(stamp.seconds))
    return f"Computed {where}{' at set-up' if stamp.is_setup else ''} ({when}, {stamp.place})."


def waited(
    want: Callable[[], list[Job]],
    keys: list[Key],
    slot: Any,
    name: str,
    frame: Drawing | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> tuple[list[Job], Exception | None]:
    """The jobs when all have ended, and the first error among them; a job broken off for others is wanted again."""
    for attempt in range(ATTEMPTS):
        jobs = want()
        wait_for(jobs, keys, slot, f"{name}.{attempt}", frame, meanwhile)
        error = next((job.error for job in jobs if job.error is not None), None)
        if not isinstance(error, runs.BROKEN_OFF):
            break
    return jobs, error


def say(slot: Any, why: str, keys: list[Key]) -> None:
    """Why there is no such result, and a button to try again."""
    with slot.container():
        st.info(plain(why))
        st.button("Run it", key=f"again.{keys[0][0]}", on_click=try_again, args=(keys,))


def owner() -> str:
    """A name for this browser session, for the worker to know whose wishes are whose."""
    if "owner" not in st.session_state:
        st.session_state["owner"] = uuid.uuid4().hex
    return str(st.session_state["owner"])


def wait_for(
    jobs: Sequence[Job],
    keys: list[Key],
    slot: Any,
    name: str,
    frame: Drawing | None,
    meanwhile: Callable[[], None] | None = None,
) -> None:
    """Wait in the script until all have ended; meanwhile the browser keeps the old figures, greyed, or ``frame``."""
    if ended(jobs, PATIENT_SECONDS if "shown" in st.session_state and meanwhile is None else QUICK_SECONDS):
        return
    with slot.container():
        bar = st.progress(0.0)
        st.button("Cancel", key=f"cancel.{name}", on_click=cancel, args=(keys,))
        if frame is not None:
            chart(frame, f"coming.{name}")
    told, drawn_at = None, 0.0
    while not ended(jobs, POLL_SECONDS):
        share, message = progress_of(jobs)
        if told != (told := (round(share, 1), message)):
            bar.progress(share, text=plain(message[:1].upper() + message[1:]))
        if meanwhile is not None and time.monotonic() - drawn_at >= DRAW_SECONDS:
            meanwhile()
            drawn_at = time.monotonic()
    slot.empty()


def ended(jobs: Sequence[Job], seconds: float) -> bool:
    """Whether all end within that time. A newer setting of this page ends the wait, and with it the script."""
    end = time.monotonic() + seconds
    while pending := [job for job in jobs if not job.done.is_set()]:
        left = end - time.monotonic()
        if left <= 0:
            return False
        for job in jobs:
            job.seen()
        # to look at the session's state is a point where Streamlit may end a script, and sends the browser nothing
        _ = "shown" in st.session_state
        pending[0].done.wait(min(left, POLL_SECONDS))
    return True


def progress_of(jobs: Sequence[Job]) -> tuple[float, str]:
    """How far all of them are together, and what is being done now, be it for another visitor."""
    done = sum(job.done.is_set() for job in jobs)
    running = WORKER.running
    if running is None:
        return done / len(jobs), "Waiting for the model"
    if running in jobs:
        return (done + running.share) / len(jobs), running.message
    return done / len(jobs), f"Waiting for another run: {running.message} ({running.share:.0%})"


def cancel(keys: list[Key]) -> None:
    """Stop the run and remember that it was stopped, or the next rerun would start it again."""
    stopped().append(keys)
    WORKER.want(owner(), [])


def stopped() -> list[list[Key]]:
    """What this session has stopped, by the keys of what was computed together."""
    found: list[list[Key]] = st.session_state.setdefault("cancelled", [])
    return found


def try_again(keys: list[Key] | None = None) -> None:
    """Forget that it was stopped; without ``keys``, that anything was."""
    st.session_state["cancelled"] = [one for one in stopped() if keys is not None and one != keys]


def last_shown(slot: Any, why: str, needs_maps: bool) -> tuple[View, list[Run]]:
    """What this session saw last, with a sentence that says so."""
    view, keys = st.session_state.get("shown", (View(), []))
    found = [run for run in map(WORKER.result, keys) if run is not None and (not needs_maps or has_maps(run, view))]
    is_whole = len(found) == 2
    with slot.container():
        st.info(
            f"{plain(why)} {'The figures still show the previous settings.' if is_whole else 'Nothing is shown yet.'}"
        )
        st.button("Run it", key="again", on_click=try_again)
    if not is_whole:
        st.stop()
    return view, found


def has_maps(run: Run, view: View) -> bool:
    return (min(view.layer, run.trace.layers - 1), 0) in run.trace.maps
