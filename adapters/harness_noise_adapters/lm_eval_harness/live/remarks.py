"""Notes on the repeats of a live run, shown before the run starts."""

from __future__ import annotations

import inspect
from typing import Any

from harness_noise.data.notes import Note

from ..scoring.rescore import GENERATE
from .further import decodes_greedily, innermost, sends_payloads
from .repeats import PROBES, Asking, native_repeats


def remarks(asking: Asking, cache_requests: bool) -> list[Note]:
    """Return notes on repeats that cannot be asked, and settings that make all answers equal."""
    lm, tasks, out = asking.lm, asking.tasks, list[Note]()
    several = {name: tasks[name] for name, K in asking.wanted.items() if K > 1}
    generating = {name: task for name, task in several.items() if task.OUTPUT_TYPE == GENERATE}
    if once := ", ".join(name for name in several if name not in generating):
        said = (
            "scored from log-likelihoods, which do not change from one repeat to the next. Asked once, and its "
            "prediction noise cannot be estimated"
        )
        out.append(Note("asked_once", said).of(once))
    out += [
        Note(
            "asked_by_the_task",
            f"the task itself asks {own} times, which is kept ({asking.wanted[name]} repeats were asked for)",
        ).of(name)
        for name, task in generating.items()
        if (own := native_repeats(task)) > asking.wanted[name]
    ]
    if new := ", ".join(name for name, task in generating.items() if not hasattr(task, "_filters")):
        said = (
            "this lm-eval (0.5) scores repeats by itself: ask with its own --repeats, and the scores that it logs are "
            "used"
        )
        out.append(Note("asked_by_lm_eval", said).of(new))
    out += [
        Note(
            "one_seed",
            f"the task itself asks {own} times, and lm-eval sends one seed with all of them: a server that honours it "
            "gives copies, which count as one answer (copied_repeats)",
        ).of(name)
        for name, task in tasks.items()
        if task.OUTPUT_TYPE == GENERATE and (own := native_repeats(task)) > 1 and _shared_seed(lm, task)
    ]
    if not asking.raised:
        return out
    if greedy := sorted(name for name, task in asking.raised.items() if decodes_greedily(innermost(lm), task)):
        said = (
            "the answers are generated greedily (temperature 0 or do_sample false), so a further answer says the same: "
            f"{PROBES} questions are asked once more, and no other if all of them are copies. Sample the answers, for "
            "instance with --gen_kwargs temperature=0.7,do_sample=true"
        )
        out.append(Note("greedy", said).of(", ".join(greedy)))
    if cache_requests:
        said = (
            "--cache_requests may give requests that were built with other generation arguments (temperature). "
            "Use --cache_requests refresh after a change"
        )
        out.append(Note("cached_requests", said))
    if not asking.reseed and sends_payloads(lm):
        said = "re-seeding is off and lm-eval sends one fixed seed: a server that honours it gives equal answers"
        out.append(Note("one_seed", said))
    return out


def _shared_seed(lm: Any, task: Any) -> bool:
    """Return True if a client sends one fixed seed with every request of a task.

    A seed that the task names, also null, goes before the client's own.
    """
    model, arguments = innermost(lm), task.config.generation_kwargs or {}
    if not sends_payloads(model):
        return False
    if "seed" in arguments:
        return arguments["seed"] is not None
    return getattr(model, "_seed", None) is not None and "seed" in inspect.signature(model._create_payload).parameters
