"""`harness-noise gate … --github FILE`: the gate that was typed, as a workflow of GitHub."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
from click.core import ParameterSource

from ..._version import __version__
from ...cli.helps import longest
from ...errors import InputError

ARTIFACT = "evaluation"
"""The name under which a push keeps its run, which a pull request is compared with."""
_OF_ACTION = {"run": "run", "margin": "margin", "against": "baseline"}
"""Parameter of `gate` → input of the action. Every other option is among its arguments."""
_NOT_PASSED = {"github", "output", "form", "color", "quiet", "debug", "details", "legend", "verdict", "store"}
"""Options for a terminal, and options that the action sets itself."""
_COMMENTS = {
    "baseline": "   # commit it, or write it in a step before this one",
    "baseline-artifact": "   # the newest one of the base branch",
}
"""Input of the action → a comment on where its value comes from."""
_OF_VERDICT = ("verdict", "output", "store")
"""Options that name a file or folder for a verdict, which is not made here."""
_AGAINST = {
    "baseline": "compares every pull request with the run `baseline` of its own checkout",
    "baseline-artifact": "compares every pull request with the newest evaluation of its base",
}
_BAR = "holds every pull request to the bar that was typed"
_RULES = {
    "regression": "It passes unless a loss beyond the margin is shown. --rule no-loss passes only if it is excluded.",
    "no-loss": "It passes only if a loss beyond the margin is excluded.",
}
_TEMPLATE = """\
# Written by harness-noise gate --github. The gate {what}.
# {rule}
name: evaluation
on:
  pull_request:
{pushes}permissions:
  contents: read         # which commits came before the base
{reads}  pull-requests: write   # the comment
jobs:
  gate:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v5
        with: {{persist-credentials: false}}
      - run: ./evaluate.sh {place}   # your evaluation; it writes {place}
{keeps}      - {only}uses: harness-noise/harness-noise@v{version}
        with:
{inputs}
"""
_PUSHES = "  push: {branches: [main]}\n"
_READS = "  actions: read          # the baseline, out of an earlier run\n"
_ONLY = "if: github.event_name == 'pull_request'\n        "
_KEEPS = """\
      - if: github.event_name == 'push'
        uses: actions/upload-artifact@v4
        with: {{name: {artifact}, path: {run}}}
"""
"""What only a workflow needs that compares with the run of an earlier push."""


def workflow(context: click.Context) -> str:
    """Return a GitHub workflow (YAML) to run the gate command of a click context. Refuse what the action cannot take.

    Raises:
        InputError: what the action does not take, or what GitHub would take for an expression.
    """
    if lost := [name for name in _OF_VERDICT if context.params[name] is not None]:
        raise InputError(
            f"`github` writes a workflow and judges nothing: leave `{lost[0]}` out, or ask for it without `github`"
        )
    values, arguments = dict[str, str](), list[str]()
    for param in context.command.params:
        name, given = str(param.name), context.params[str(param.name)]
        if context.get_parameter_source(name) is ParameterSource.DEFAULT or name in _NOT_PASSED:
            continue
        if name in _OF_ACTION:
            values[_OF_ACTION[name]] = _text(name, given)
        elif isinstance(param, click.Option):
            flag = longest(param)
            every = given if param.multiple else [given]
            arguments += [flag] if param.is_flag else [word for value in every for word in (flag, _plain(value))]
    own_bar = any(context.params[name] is not None for name in ("floor", "thresholds"))
    if "baseline" not in values and not own_bar:
        values["baseline-artifact"] = ARTIFACT
    if arguments:
        values["arguments"] = shlex.join(arguments)
    if any("${{" in value or "\n" in value for value in values.values()):
        raise InputError("`github`: a value with ${{ or a line break would be an expression of GitHub: leave it out")
    pushes = reads = keeps = only = ""
    if "baseline-artifact" in values:
        run = json.dumps(values["run"], ensure_ascii=False)
        pushes, reads, only, keeps = _PUSHES, _READS, _ONLY, _KEEPS.format(artifact=ARTIFACT, run=run)
    inputs = "\n".join(
        f"          {name}: {json.dumps(value, ensure_ascii=False)}{_COMMENTS.get(name, '')}"
        for name, value in values.items()
    )
    what = next((words for name, words in _AGAINST.items() if name in values), _BAR)
    rule, place = _RULES[context.params["rule"]], shlex.quote(values["run"])
    parts = {"pushes": pushes, "reads": reads, "keeps": keeps, "only": only, "inputs": inputs}
    return _TEMPLATE.format(version=__version__, what=what, rule=rule, place=place, **parts)


def _text(name: str, given: object) -> str:
    if isinstance(given, tuple):
        if len(given) != 1:
            raise InputError(f"`github`: the action compares with one baseline, and `{name}` names {len(given)}")
        (given,) = given
    if name != "margin" and Path(str(given)).is_absolute():
        raise InputError(f"`github`: {given} is a path of this machine: write it as it is in the repository")
    return _plain(given)


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_plain, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)
