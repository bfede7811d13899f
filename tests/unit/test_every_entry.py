"""Each setting is obeyed or refused wherever it can be given; none is taken and forgotten."""

from __future__ import annotations

import json

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run
from harness_noise.extra.factors.sources import factors_of_runs

TEMPLATE_BY_LANGUAGE = {"cluster": "template*language"}
SHARED = {"repeats_are": "runs", "runs_shared": True}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two models on 12 templates × 5 languages, three answers each."""
    rng = np.random.default_rng(3)
    folder = tmp_path_factory.mktemp("runs")
    easy = rng.normal(size=(12, 1)) + rng.normal(size=(1, 5))
    for model, gain in (("a", 0.3), ("b", 0.0)):
        lines = ["question,template,language,repeat,score"]
        for i in range(12):
            for j in range(5):
                p = 1 / (1 + np.exp(-easy[i, j] - gain))
                lines += [f"{i}-{j},t{i},l{j},{k},{int(rng.random() < p)}" for k in range(3)]
        (folder / f"{model}.csv").write_text("\n".join(lines) + "\n")
    return [str(folder / f"{model}.csv") for model in "ab"]


@pytest.mark.parametrize("choices", [{"test": "wild"}, {"questions_are": "fixed"}, {"repeats_are": "runs"}, SHARED])
def test_metrics_that_are_no_means_refuse(choices):
    keys = Questions(tuple(map(str, range(6))))
    stats = np.random.default_rng(0).random((6, 2, 1))
    runs = [
        Run(m, m, "test", corpus=(CorpusScores("t", "bleu", "none", keys, stats=stats, value=lambda s: s[..., 0]),))
        for m in "ab"
    ]
    with pytest.raises(hn.InputError, match="Leave this one out with `metrics`"):
        hn.compare(*runs, **choices)
    if choices in ({"questions_are": "fixed"}, {"repeats_are": "runs"}):
        with pytest.raises(hn.InputError, match="Leave this one out with `metrics`"):
            hn.analyze(runs[0], **choices)


def test_metrics_that_are_no_means_refuse_crossed_clusters():
    keys = Questions(tuple(map(str, range(6))))
    stats = np.random.default_rng(0).random((6, 2, 1))
    labels = tuple(f"t{i % 3} ⨯ l{i % 2}" for i in range(6))
    item = CorpusScores("t", "bleu", "none", keys, stats=stats, value=lambda s: s[..., 0], clusters=labels)
    with pytest.raises(hn.InputError, match="two crossed ways"):
        hn.analyze(Run("a", "a", "test", corpus=(item,)))


def test_factors_refuse_crossed_clusters(tables):
    (run,) = hn.read(tables[0], cluster="template*language", factors=("template",))
    with pytest.raises(hn.InputError, match="name either way as a factor"):
        factors_of_runs([run], {"template": "template"})


@pytest.mark.parametrize("test", ["sign", "permutation", "bootstrap", "wild"])
def test_crossed_clusters_refuse_tests_of_whole_clusters(tables, test):
    with pytest.raises(hn.InputError, match="two crossed ways: use `test='t'`"):
        hn.compare(*tables, test=test, **TEMPLATE_BY_LANGUAGE)
    with pytest.raises(hn.InputError, match="`interval='bootstrap'` takes whole"):
        hn.analyze(tables[0], interval="bootstrap", **TEMPLATE_BY_LANGUAGE)


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main(list(arguments))
        return (code, *capsys.readouterr())

    return call


@pytest.mark.parametrize(
    "spec",
    [
        ("--cluster", "template", "--cluster", "language"),
        ("--cluster", "template*language"),
        ("--cluster", "template × language"),
        ("--cluster", "t=template", "--cluster", "t=language"),
        ("--cluster", "*={{template}}*language"),
    ],
)
def test_crossed_clusters_on_the_command_line(run, tables, spec):
    code, out, _ = run("compare", *tables, *(item.replace("t=", "*=", 1) for item in spec), "--format", "json")
    assert code == 0
    row = json.loads(out)["comparisons"][0]
    assert row["cluster"] == ("{{template}} × language" if "{{" in spec[-1] else "template × language")
    assert row["n_clusters"] == 5
    assert row["se"] == hn.compare(*tables, **TEMPLATE_BY_LANGUAGE).comparisons[0].se


@pytest.mark.parametrize(
    ("command", "option", "code"),
    [
        ("compare", ("--test", "wild"), 0),
        ("compare", ("--questions-are", "fixed"), 0),
        ("analyze", ("--questions-are", "fixed"), 0),
        ("arena", ("--questions-are", "fixed"), 0),
        ("compare", ("--repeats-are", "runs", "--runs-shared"), 0),
        ("compare", ("--runs-shared",), 2),
        ("analyze", ("--runs-shared",), 2),
        ("arena", ("--repeats-are", "runs", "--runs-shared"), 2),
        ("analyze", ("--test", "wild"), 2),
        ("analyze", ("--se", "cr3"), 0),
        ("arena", ("--se", "cr3"), 0),
        ("arena", ("--cluster", "template*language"), 0),
        ("arena", ("--cluster", "template*language", "--test", "sign"), 2),
        ("compare", ("--cluster", "template*auto"), 2),
        ("compare", ("--cluster", "a*b*c"), 2),
        ("compare", ("--cluster", "template", "--cluster", "x=language"), 2),
        ("compare", ("--cluster", "template*nope"), 2),
    ],
)
def test_on_the_command_line(run, tables, command, option, code):
    files = tables[:1] if command == "analyze" else tables
    found, out, err = run(command, *files, *option)
    assert found == code, (out, err)
    assert ("Traceback" in err) is False
    if "fixed" in option:
        assert "stimand: these questions" in " ".join(out.split())
