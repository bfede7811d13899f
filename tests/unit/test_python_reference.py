"""The reference of the Python functions: all of them are on the page, their texts fit them, their examples run."""

from __future__ import annotations

import dataclasses
import doctest
import io
import re
from importlib import import_module
from inspect import Parameter, getdoc, isfunction, signature
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli.commands import in_flags

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python-reference.md"
PUBLIC = [name for name in hn.__all__ if name != "__version__"]
OTHERS = sorted({name for name in dir(hn) if hasattr(hn, name)} - set(hn.__all__) - {"__version__"})
"""What extras add that the core does not name."""
NO_ESTIMATE = {"adapters", "as_scores", "profiles", "read", "render", "terms", "what"}
NO_ESTIMATE |= {name for name in PUBLIC + OTHERS if name.startswith("write_")}
FUNCTIONS = [name for name in PUBLIC if isfunction(getattr(hn, name))]
EVERY_FUNCTION = [name for name in PUBLIC + OTHERS if isfunction(getattr(hn, name))]


def sections(function):
    """Heading → text of a docstring in numpydoc's form."""
    parts = re.split(r"^(\w+)\n-+\n", getdoc(function), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_public_name_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    assert sorted(re.findall(r"^::: harness_noise\.(\w+)$", text, re.M)) == sorted(PUBLIC)
    others = dict(re.findall(r"^::: (harness_noise\.extra\.[\w.]+)\.(\w+)$", text, re.M))
    assert sorted(re.findall(r"^::: harness_noise\.extra\.[\w.]+\.(\w+)$", text, re.M)) == OTHERS
    for module in others:
        for name in re.findall(rf"^::: {module}\.(\w+)$", text, re.M):
            assert getattr(import_module(module), name) is getattr(hn, name)


def test_the_introduction_lists_every_function_with_the_first_line_of_its_text():
    page = PAGE.with_name("python.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \[`(\w+)`\]\S+ \| (.*?) \|", page.replace(r"\|", "¦"), re.M))
    first = {name: getdoc(getattr(hn, name)).splitlines()[0].removesuffix(".") for name in EVERY_FUNCTION}
    assert listed == {name: line.replace("|", "¦") for name, line in first.items()}


@pytest.mark.parametrize("name", EVERY_FUNCTION)
def test_a_function_describes_each_parameter_its_result_and_its_errors(name):
    function = getattr(hn, name)
    found = sections(function)
    lines = re.findall(r"^[*]*(\w.*)$", found.get("Parameters", ""), re.M)
    assert [word for line in lines for word in line.split(", ")] == list(signature(function).parameters)
    assert "Returns" in found
    assert ("Raises" in found) == bool(lines)
    vague = "Input that cannot|Input or settings that cannot|do not fit together"
    assert not re.search(vague, found.get("Raises", "")), "name what is refused"
    assert ("References" in found) == (name not in NO_ESTIMATE)


def test_other_keywords_are_those_of_choices_and_no_more():
    """Unpacked keywords are known by name: what no function has is an error, not swallowed."""
    taken = {name for name in FUNCTIONS if "choices" in signature(getattr(hn, name)).parameters}
    on_arrays = {"estimate", "estimate_difference", "compare_in_sequence", "estimate_from_part", "estimate_with_labels"}
    on_runs = {"read", "analyze", "compare", "regress", "arena", "plan", "factors", "export", "gate", "label_sample"}
    assert taken - on_arrays == on_runs
    fields = {item.name for item in dataclasses.fields(hn.Settings)}
    for name in taken:
        item = signature(getattr(hn, name)).parameters["choices"]
        typed = "Unpack[Computing]" if name in on_arrays else "Unpack[Choices]"
        assert (item.kind, item.annotation) == (Parameter.VAR_KEYWORD, typed)
    reading = {"tasks", "metrics", "scorers", "groups", "columns", "format_file", "follow_links", "apart"}
    reading |= {"as_repeats", "progress", "say", "measures", "prices"}
    reading |= {"labels", "labels_scorer", "label_range", "labels_at_random"}
    assert set(hn.Choices.__annotations__) <= fields | reading
    with pytest.raises(TypeError, match=r"analyze\(\) got an unexpected keyword argument 'levels'"):
        hn.analyze("x.csv", levels=0.9)
    with pytest.raises(TypeError, match=r"'details': it is for render\(result, details=…\)"):
        hn.analyze("x.csv", details=True)
    for name in reading:  # an array is not read
        with pytest.raises(TypeError, match=rf"estimate\(\) got an unexpected keyword argument '{name}'"):
            hn.estimate([1.0, 0.0], **{name: None})


@pytest.mark.parametrize("name", EVERY_FUNCTION)
def test_the_examples_of_a_docstring_run(name):
    function, report = getattr(hn, name), io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder().find(function, name, globs={}):
        runner.run(test, out=report.write)
    assert runner.failures == 0, report.getvalue()
    assert (runner.tries > 0) == ("Examples" in sections(function))


def test_an_interval_is_a_pair_with_names():
    row = hn.estimate([1.0, 0.0, 1.0, 1.0])
    low, high = row.confidence_interval
    assert (low, high) == (row.confidence_interval.low, row.confidence_interval.high) == (row.ci_low, row.ci_high)
    difference = hn.estimate_difference([1.0, 0.0, 1.0], [0.0, 0.0, 1.0])
    assert difference.confidence_interval == (difference.ci_low, difference.ci_high)
    assert hn.estimate([np.nan, 0.5]).confidence_interval == (None, None)


def test_a_list_of_one_run_is_a_side_and_a_name_may_stand_alone(tmp_path):
    for model, scores in (("a", "110"), ("b", "100")):
        lines = [f"{task},{i},{x}" for task in ("one", "two") for i, x in enumerate(scores)]
        (tmp_path / f"{model}.csv").write_text("\n".join(["task,question,score", *lines]))
    a, b = (hn.read(tmp_path / f"{model}.csv", tasks="one") for model in "ab")
    assert [run.model for run in a] == ["a"]
    (row,) = hn.compare(a, b).comparisons
    assert (row.task, row.diff) == ("one", pytest.approx(1 / 3))
    (same,) = hn.compare(tmp_path / "a.csv", tmp_path / "b.csv", tasks="one").comparisons
    assert same == row
    assert hn.plan(runs=[*a, *b], effect=0.1) == hn.plan(
        runs=[tmp_path / "a.csv", tmp_path / "b.csv"], tasks=["one"], effect=0.1
    )
    with pytest.raises(hn.InputError, match=r"a list holds 2 runs \(a, b\)"):
        hn.compare([*a, *b], b)
    with pytest.raises(hn.InputError, match="`tasks` is about `runs`, and none is given: name a run"):
        hn.plan(accuracy=0.5, effect=0.1, tasks=["one"])


@pytest.mark.parametrize(
    ("python", "flags"),
    [
        ("`runs_shared=True` needs `repeats_are='runs'`", "--runs-shared needs --repeats-are runs"),
        ("leave `test` and `interval` as they are", "leave --test and --interval as they are"),
        ("a.csv: `tasks` u is not in this run", "a.csv: --task u is not in this run"),
        ("`range=(LOW, HIGH)` or `range=(-1, 2.5)`", "--range LOW,HIGH or --range -1,2.5"),
        ("`columns={'question': 'COLUMN'}`", "--columns question=COLUMN"),
        ("`runs` takes one run or two", "--from takes one run or two"),
        ("use `compare`, or `arena RUN… --write-profile FILE`", "use `compare`, or `arena RUN… --write-profile FILE`"),
        ("`profiles` lists, `label_sample` draws", "`harness-noise list` lists, `harness-noise label` draws"),
        ("the file `scores` and `x=1`", "the file `scores` and `x=1`"),
    ],
)
def test_messages_name_flags_on_the_command_line(python, flags):
    assert in_flags(python) == flags
