"""Whatever a command can do, a function of Python does under the same name, and the other way round."""

from __future__ import annotations

from inspect import isfunction, signature

import click
import pytest

import harness_noise as hn
from harness_noise.cli.commands import COMMANDS, cli
from harness_noise.extras import switches
from harness_noise.settings import obeyed

FUNCTIONS = {
    "analyze": hn.analyze, "compare": hn.compare, "gate": hn.gate, "regress": hn.regress, "arena": hn.arena,
    "factors": hn.factors, "plan": hn.plan, "export": hn.export, "label": hn.label_sample,
    "pairs": hn.pairs, "what": hn.what,
}  # fmt: skip
"""Command → the function that it calls."""
ONLY_COMMANDS = {
    "list": "it calls `profiles` and `adapters`, and `read` of a file",
    "demo": "it runs the commands, for a first look",
    "lm-eval": "it is lm-eval's own; in Python: `with noise(): lm_eval.simple_evaluate(…)`",
}
SIDES = {"term", "words", "a", "b", "run", "runs", "name", "file", "source", "others"}
"""What is given without a flag: RUN… ."""
OF_RESULTS = {
    "form": "render(format=)", "output": "render", "details": "render(details=, wide=)",
    "legend": "render(legend=)",
    "quiet": "the caller's", "debug": "the caller's", "html": "write_html", "figures": "write_figures",
    "tables": "write_tables", "paper": "write_paper",
    "write_profile": "write_profile", "with_questions": "write_profile(with_questions=)",
    "force": "write_profile(force=)", "junit": "Gate.to_junit", "github": "a workflow is of the command line",
    "verdict": "Gate.to_json",
}  # fmt: skip
"""Option → the function of Python that does it with the result."""
OF_PYTHON = {"settings", "progress", "say", "by_question"}
"""Settings given whole, what a terminal shows while files are read, and what `compare --html` asks for."""
_LABELS = {"labels", "labels_scorer", "label_range", "labels_at_random"}
ELSEWHERE = {
    "plan": {"judged", "r2", "target_se", "sigma2_judge", "k_max", "assurance", *_LABELS}, "factors": {"more"},
    "label": {"blind"}, "gate": {"keep"},
}  # fmt: skip
"""Keywords that have no option of their command: those of `label --plan`; and what only who calls Python needs."""
OF_OTHERS = {
    "label": {"planned", "effect", "target_se", "power", "judged", "r2", "omega2", *_LABELS, *OF_RESULTS},
    **{command: {each.name for each in switches(command)} for command in ("analyze", "arena", "compare", "gate")},
}
"""Options of a command that another function of Python obeys: `label --plan` calls `plan`, an extra its own."""
OTHERWISE = {
    ("plan", "more"): "runs",
    ("export", "output"): "output",
}
"""Options of a command whose keyword has another name."""


def options_of(command):
    """The keywords that the options of a command stand for; those that only refuse an old spelling are hidden."""
    taken = cli.get_command(click.Context(cli), command).params
    visible = [item for item in taken if not getattr(item, "hidden", False) and item.name != "help"]
    return {OTHERWISE.get((command, item.name), item.name) for item in visible}


def keywords_of(command):
    """All that the function of a command takes: its own parameters, and of `Choices` what it obeys."""
    own = signature(FUNCTIONS[command]).parameters
    shared = hn.Choices.__annotations__ if "choices" in own else {}
    more = {name for name in shared if name in OF_PYTHON or obeyed(name, command) != ()}
    return {name for name in own if name != "choices"} | more


def test_every_command_is_a_function_and_every_function_on_files_a_command():
    assert set(FUNCTIONS) | set(ONLY_COMMANDS) == set(COMMANDS)
    public = [getattr(hn, name) for name in hn.__all__ if isfunction(getattr(hn, name))]
    reads = [item for item in public if "Choices" in str(signature(item).parameters.get("choices"))]
    assert {item.__name__ for item in reads} - {"read"} <= {item.__name__ for item in FUNCTIONS.values()}
    assert len(reads) == 10


@pytest.mark.parametrize("command", FUNCTIONS)
def test_options_and_keywords_have_the_same_names(command):
    options, keywords = options_of(command), keywords_of(command)
    shown = set() if command == "export" else set(OF_RESULTS)
    options -= OF_OTHERS.get(command, set())
    assert options - keywords - SIDES - shown - {"quiet", "debug"} == set(), "in no function"
    elsewhere = ELSEWHERE.get(command, set()) | OF_OTHERS.get(command, set())
    assert keywords - options - SIDES - OF_PYTHON - elsewhere == set(), "on no command line"
