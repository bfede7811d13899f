"""A keyword that a call does not obey is refused by name; none is taken and forgotten."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.settings import KEYWORDS, obeyed

GIVEN: dict[str, Any] = {
    "tasks": "one", "metrics": "score", "scorers": "none", "groups": {"g": "*"},
    "columns": {"score": "score"}, "format_file": "f.toml", "measures": ["cost"], "prices": ["input=1,output=2"],
    "follow_links": True,
    "apart": True, "as_repeats": True, "models": ["a", "b"], "against": "c.csv",
    "complete": "c.csv", "profile": "gpqa_diamond",
    "by": "template", "questions": 3, "by_question": True, "answers_b": 4, "n": 30, "looks": 5, "two_like_this": True,
    "assurance": 0.9, "answers": 500, "accuracy": 0.7, "solved": 0.9, "omega2": 0.2, "sigma2": 0.1, "cluster_size": 5.0,
    "icc": 0.2, "design_effect": 2.0, "labels": "labels.csv", "labels_scorer": "human", "label_range": (1.0, 5.0),
    "labels_at_random": True, "judged": 900, "r2": 0.5, "target_se": 0.01,
}  # fmt: skip
"""A value of each keyword."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, folder = np.random.default_rng(4), tmp_path_factory.mktemp("runs")
    for model in "abc":
        rows = [f"one,{i},t{i // 5},{k},{int(rng.random() < 0.6)}" for i in range(40) for k in range(2)]
        (folder / f"{model}.csv").write_text("\n".join(["task,question,template,repeat,score", *rows]) + "\n")
    return folder


ROW = hn.estimate([[1, 1], [0, 1], [0, 0], [1, 1]])
FORMS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "read": (hn.read, ("a.csv",), {}),
    "analyze": (hn.analyze, ("a.csv",), {}),
    "factors": (hn.factors, ("a.csv", {"template": "template"}), {}),
    "export": (hn.export, ("a.csv", "elsewhere"), {}),
    "counts": (hn.compare, ((74, 100), (66, 100)), {}),
    "profile": (hn.compare, (0.74, 0.66), {"profile": "gpqa_diamond"}),
    "sides": (hn.compare, ("a.csv", "b.csv"), {}),
    "against": (hn.compare, (["a.csv", "b.csv"],), {"against": "c.csv"}),
    "unpaired": (hn.compare, ("a.csv", "b.csv"), {"unpaired": True}),
    "plan": (hn.plan, (), {"effect": 0.05, "runs": "a.csv"}),
    "plan_row": (hn.plan, (), {"effect": 0.05, "runs": ROW}),
    "plan_profile": (hn.plan, (), {"effect": 0.05, "profile": "gpqa_diamond"}),
    "plan_accuracy": (hn.plan, (), {"effect": 0.05, "accuracy": 0.7}),
    "plan_numbers": (hn.plan, (), {"effect": 0.05, "omega2": 0.2}),
}
"""What can be given to a function → the function, and what is given."""
ELSEWHERE = {
    "sides": {"models", "against"},
    "against": {"models"},
    "unpaired": {"questions", "by_question"},
}
"""Forms that refuse some keywords beside those of `compare`."""


def refused(form: str) -> list[str]:
    function, _, given = FORMS[form]
    names = set(signature(function).parameters) | set(hn.Choices.__annotations__)
    can = {name for name in KEYWORDS if name in names and name not in given and obeyed(name, form) == ()}
    return sorted(can & ELSEWHERE.get(form, can))


@pytest.mark.parametrize(("form", "name"), [(form, name) for form in FORMS for name in refused(form)])
def test_what_a_call_does_not_obey_it_refuses(
    form: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    function, sides, given = FORMS[form]
    several_places = form.startswith("plan") and name in ("accuracy", "omega2", "profile")
    with pytest.raises(hn.InputError, match="the noise comes from one of" if several_places else f"`{name}`"):
        function(*sides, **given, **{name: GIVEN[name]})


ON_RUNS: dict[str, Any] = {
    "analyze": lambda x, y, **choice: hn.analyze(x, **choice),
    "compare": hn.compare,
    "against": lambda x, y, **choice: hn.compare([x], against=y, **choice),
    "regress": lambda x, y, **choice: hn.regress([x, y], on="template", **choice),
    "arena": lambda x, y, **choice: hn.arena([x, y], **choice),
    "plan": lambda x, y, **choice: hn.plan(effect=0.1, runs=[x, y], **choice),
    "gate": hn.gate,
    "factors": lambda x, y, **choice: hn.factors([x, y], {"model": "model"}, **choice),
    "label_sample": lambda x, y, **choice: hn.label_sample([x, y], 5, **choice),
}


@pytest.mark.parametrize("name", ["columns", "format_file", "follow_links", "apart"])
@pytest.mark.parametrize("function", ON_RUNS)
def test_how_files_are_read_is_refused_where_only_runs_are_given(function: str, name: str, folder: Path) -> None:
    a, b = (hn.read(folder / f"{model}.csv", fields="template")[0] for model in "ab")
    with pytest.raises(hn.InputError, match=f"`{name}`"):
        ON_RUNS[function](a, b, **{name: GIVEN[name]})


def test_columns_are_for_the_file_beside_a_run(folder: Path) -> None:
    run, other = hn.read(folder / "a.csv")[0], folder / "b.csv"
    chosen = hn.compare(run, other, columns={"score": "repeat"}).comparisons[0]
    assert chosen.mean_b == 0.5
    assert chosen.mean_a == hn.analyze(run).estimates[0].mean


@pytest.mark.parametrize("nothing", [[], None, [None], 5])
@pytest.mark.parametrize("function", ON_RUNS)
def test_what_is_no_run_is_refused_in_words(function: str, nothing: Any, folder: Path) -> None:
    calls: dict[str, Any] = {
        "compare": hn.compare,
        "against": lambda x: hn.compare(x, against=folder / "a.csv"),
        "regress": lambda x: hn.regress(x, on="template"),
        "arena": hn.arena,
        "plan": lambda x: hn.plan(effect=0.1, runs=x),
        "factors": lambda x: hn.factors(x, {"model": "model"}),
        "analyze": hn.analyze,
        "gate": lambda x: hn.gate(x, floor=0.5),
        "label_sample": hn.label_sample,
    }
    words = r"no run|in place of a run|two numbers|only their numbers|the noise comes from one of"
    with pytest.raises(hn.InputError, match=words):
        calls[function](nothing)


def test_a_top_of_no_model_is_refused(folder: Path) -> None:
    with pytest.raises(hn.InputError, match="`top` 0 is not a whole number of 1 or more"):
        hn.arena([folder / "a.csv", folder / "b.csv"], top=0)


def test_sources_may_come_one_at_a_time(folder: Path) -> None:
    files = [folder / "a.csv", folder / "b.csv"]
    assert hn.compare(iter(files)) == hn.compare(files)
    with pytest.raises(hn.InputError, match="they are two numbers"):
        hn.compare((0.74, 100), (0.66, 100))


def test_forms_refuse_much_and_take_what_is_empty_for_what_is_not_given(folder: Path) -> None:
    assert sum(len(refused(form)) for form in FORMS) > 80
    counts = hn.compare((74, 100), (66, 100), complete=(), tasks=[], columns={}, groups=None, by=(), apart=False)
    assert counts == hn.compare((74, 100), (66, 100))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: hn.estimate_difference(x, x, adjust="bh"), "`adjust='bh'` is about several rows"),
        (lambda x: hn.estimate_difference(x, x, cluster="c"), "give names as `clusters`"),
        (lambda x: hn.estimate(x, cluster="c"), "give names as `clusters`"),
        (lambda x: hn.regress(["a.csv", "b.csv", "c.csv"], on="template"), "3 runs are given: a, b, c"),
        (lambda x: hn.export("a.csv"), "`output` DIR"),
        (lambda x: hn.factors("a.csv", ["seed"]), "factors accepts Mapping, not list"),
        (lambda x: hn.analyze("a.csv", columns=["score"]), "columns accepts Mapping, not list"),
        (lambda x: hn.write_html(hn.plan(effect=0.1, accuracy=0.5), "o"), "accepts Analysis or Comparison or Arena"),
        (
            lambda x: hn.write_figures(ROW, "o"),
            "write_figures accepts Analysis or Comparison or Arena or Plan, not Estimate",
        ),
        (lambda x: hn.write_tables(hn.analyze("a.csv"), "o"), "write_tables accepts Arena, not Analysis"),
        (lambda x: hn.write_profile(hn.analyze("a.csv"), "o"), "write_profile accepts Arena, not Analysis"),
        (lambda x: hn.compare((74, 100), (66, 100), margin=5), r"Did you mean 0\.05 \(5%\)\?$"),
    ],
)
def test_a_refusal_says_what_can_be_done(call: Any, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(hn.InputError, match=words) as caught:
        call(np.array([[1, 1], [0, 1], [0, 0], [1, 1]]))
    assert "--" not in str(caught.value)
    assert " -o " not in str(caught.value)
    assert "baseline" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "--effect", "0.1", "--accuracy", "0.5", "--se", "cr3"], "--se cr3 is about --from"),
        (["plan", "--effect", "0.1", "--accuracy", "0.5", "--seed", "3"], "--seed 3 is about --from"),
        (["plan", "--effect", "0.1", "--accuracy", "0.5", "--apart"], "--apart is about --from"),
        (
            ["plan", "--effect", "0.1", "--omega2", "0.2", "--solved", "0.5"],
            "--solved is one of the numbers",
        ),
        (["compare", "74/100", "66/100", "--as-repeats"], "--as-repeats is about the answers of two runs"),
        (["compare", "a.csv", "b.csv", "--questions", "3", "--unpaired"], "leave it or --unpaired out"),
        (["export", "a.csv"], "-o DIR"),
    ],
)
def test_on_the_command_line_a_refusal_names_the_option_that_was_given(
    arguments: list[str], words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_a_page_of_counts_or_of_unpaired_runs_lists_no_questions(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for arguments in (["74/100", "66/100"], ["a.csv", "b.csv", "--unpaired"]):
        page = tmp_path / "page.html"
        assert main(["compare", *arguments, "--html", str(page)]) == 0
        assert page.exists()
