"""The options of the commands: made from the settings that each obeys, with one meaning, and grouped in --help."""

from __future__ import annotations

import re
import shlex
from itertools import combinations
from typing import Any

import click
import pytest

from harness_noise import InputError
from harness_noise.cli import helps, main
from harness_noise.cli.commands import COMMANDS, cli
from harness_noise.settings import Settings, consumers

CONSUMERS = ("analyze", "arena", "compare", "regress", "factors", "plan", "export")
FIELDS = Settings.__dataclass_fields__
ANOTHER: dict[str, Any] = {
    "level": 0.8, "margin": 0.1, "unpaired": True, "runs_shared": True, "range": (0.0, 1.0), "cluster": "x", "seed": 3,
    "resamples": 300, "missing": "zero", "weights": "size", "chance": 0.2, "only": ("a = 1",),
}  # fmt: skip
"""A value beside the default of each setting that is not one of a few words."""


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def offered(name: str) -> dict[str, click.Option]:
    """The options of a command that are settings, by field."""
    params = [param for param in command(name).params if isinstance(param, click.Option)]
    return {param.name: param for param in params if param.name in FIELDS}


def values(param: click.Option) -> list[Any]:
    """What a command offers for a setting, beside the default."""
    assert param.name is not None
    if isinstance(param.type, click.Choice):
        return [value for value in param.type.choices if value != FIELDS[param.name].default]
    return [ANOTHER[param.name]]


def refused(consumer: str, **choices: Any) -> bool:
    try:
        Settings(**choices).check(consumer)
    except InputError:
        return True
    return False


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_command_offers_what_it_obeys_and_nothing_that_is_always_refused(name: str) -> None:
    options = offered(name)
    obeyed = {field for field in FIELDS if name in consumers(field)}
    assert set(options) == obeyed
    for field, param in options.items():
        beside = {"repeats_are": "runs"} if field == "runs_shared" else {}
        assert [value for value in values(param) if refused(name, **{field: value}, **beside)] == [], field


@pytest.mark.parametrize(("name", "pairs", "apart"), [("compare", 26, 218), ("arena", 11, 160), ("analyze", 11, 118)])
def test_pairs_of_values_that_are_refused_together_are_few(name: str, pairs: int, apart: int) -> None:
    """Each of them is explained where `settings` refuses it; a new one is a decision, and is counted here."""
    left_out = ("cluster", "seed", "resamples", "runs_shared")
    choices = [
        (field, value) for field, param in offered(name).items() if field not in left_out for value in values(param)
    ]
    together = [(one, other) for one, other in combinations(choices, 2) if one[0] != other[0]]
    assert len(together) == apart
    assert sum(refused(name, **dict(pair)) for pair in together) <= pairs


def test_no_option_has_two_meanings() -> None:
    """A flag in one command is no value in another, and a number no word."""
    kinds: dict[str, set[tuple[bool, str]]] = {}
    for name in COMMANDS:
        for param in command(name).params:
            for flag in param.opts if isinstance(param, click.Option) else ():
                number = (
                    "number" if isinstance(param.type, (click.types.IntParamType, click.types.FloatParamType)) else ""
                )
                kinds.setdefault(flag, set()).add((getattr(param, "is_flag", False), number))
    assert {flag: kind for flag, kind in kinds.items() if len(kind) > 1} == {}


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["arena", "x", "--baseline-model", "m"], "--baseline-model is now --against"),
        (["compare", "x", "--baseline", "m"], "--baseline is now --against"),
        (["analyze", "x", "--explain"], "--explain is now --legend"),
        (["plan", "--k-max", "3"], "--k-max is now `hn.plan(k_max=…)`"),
        (["plan", "--assurance", "0.9"], "--assurance is now `hn.plan(assurance=…)`"),
        (["plan", "--sigma2-judge", "1"], "--sigma2-judge is now `hn.plan(sigma2_judge=…)`"),
        (["factors", "x", "--more", "5"], "--more is now `hn.factors(more=…)`"),
        (["plan", "--reference", "x"], "--reference is now --profile NAME|FILE (whose noise), or --complete RUN"),
        (["arena", "x", "--questions"], "--with-questions"),
        (["arena", "x", "--profile", "f"], "--write-profile FILE"),
        (["plan", "--clusters", "x"], "write --cluster"),
        (["factors", "x", "--as-repeats", "--factor", "run"], "--factor run"),
        (["export", "x", "--task", "t"], "whole runs"),
        (["factors", "x", "--cluster", "c"], "what questions share is a factor"),
        (["arena", "x", "--repeats-are", "runs"], "use `compare` on the pairs"),
        (["analyze", "x", "--margin", "0.1"], "about a difference"),
        (["compare", "x", "y", "--interval", "wilson"], "A difference has t"),
        (["arena", "x", "--test", "permutation"], "use `compare` on the pairs"),
    ],
)
def test_an_option_that_is_not_offered_says_why(
    capsys: pytest.CaptureFixture[str], arguments: list[str], hint: str
) -> None:
    assert main(arguments) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "lm-eval"])
def test_help_begins_with_an_example_that_can_be_typed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("Example: harness-noise ")
    program, typed, *arguments = shlex.split(lines[2].removeprefix("Example: "))
    assert (program, typed) == ("harness-noise", name)
    command(name).make_context(name, arguments)  # fails where one of its options is not there


def test_help_has_groups_and_the_width_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    widest = {}
    for columns in (80, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["compare", "--help-all"]) == 0
        out = capsys.readouterr().out
        titles = [line for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
        assert titles == ["What to read:", "What to compute:", "What to show:", "Other options:"]
        widest[columns] = max(map(len, out.splitlines()))
    assert 70 < widest[80] < 80
    assert 140 < widest[160] < 160


MOST_COMMANDS, MOST_OPTIONS = 14, 100
"""The budget of the command line: whoever adds one names the one that goes."""


def test_the_command_line_keeps_its_budget() -> None:
    flags = {helps.longest(param) for name in COMMANDS for param in command(name).params if hasattr(param, "hidden")}
    assert len(COMMANDS) <= MOST_COMMANDS
    assert len(flags) <= MOST_OPTIONS, sorted(flags)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "lm-eval"])
def test_help_is_short_and_help_all_names_every_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for flag in ("-h", "--help", "--help-all"):
        assert main([name, flag]) == 0
        shown[flag] = capsys.readouterr().out
    assert shown["-h"] == shown["--help"]
    every = [helps.longest(param) for param in command(name).params if isinstance(param, click.Option)]
    assert len(re.findall(r"^  -", shown["-h"], re.M)) <= helps.MOST_SHOWN + 1
    assert [flag for flag in every if not re.search(rf"{flag}\b", shown["--help-all"])] == []


def test_what_says_how_files_are_read_is_explained_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "reading"]) == 0
    told = capsys.readouterr().out
    for name in COMMANDS:
        for param in command(name).params:
            if isinstance(param, click.Option) and helps.is_shared(param):
                assert re.search(rf"^  {helps.longest(param)}\b", told, re.M), param.name
                main([name, "--help-all"])
                assert str(param.help)[:40] not in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("analyze a.csv --html f", "No such option --html: compare and arena have it."),
        ("compare a.csv b.csv --junit f", "No such option --junit: gate has it."),
        ("analyze a.csv --htlm f", "No such option '--htlm'. Did you mean '--help'?"),
        ("gate a.csv b.csv", "gate takes one RUN. Name the baseline with --against. compare takes two runs, arena"),
    ],
)
def test_a_refusal_names_the_command_that_has_it(typed: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed.split()) == 2
    assert words in " ".join(capsys.readouterr().err.split())
