"""F1 of tasks that log (gold, prediction) and aggregate with code of their own."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise_adapters.extra.corpus import aggregates
from support.notes import noted

DATE = "2026-01-16T16-02-26.648276"
SOURCE = "def agg(items):\n    return 0\n"


def rows_of(shared_data):
    (path,) = (shared_data / "lm_eval" / "masakhaner").glob("samples_*.jsonl")
    return path, [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def span_f1_agg():
    module = pytest.importorskip("lm_eval.tasks.afrobench.masakhaner.prompt_1.utils")
    return module.span_f1_agg


def entities(draw: random.Random) -> str:
    tags = ["PER", "LOC", "DATE", "the ORG"]
    words = ["David", "New York", "Dr. Who", "the  A, B", "x$y", "  two\t tabs", "a: b", "Nairobi.", "«É»", "the"]
    joint = draw.choice([" $$ ", " $ ", ". ", ", "])
    return joint.join(f"{draw.choice(tags)}: {draw.choice(words)}" for _ in range(draw.randrange(5)))


def test_span_f1_is_that_of_lm_eval(span_f1_agg):
    draw = random.Random(3)
    for _ in range(300):
        items = [[entities(draw), draw.choice([entities(draw), [entities(draw)]])] for _ in range(draw.randrange(1, 8))]
        assert aggregates.F1_KINDS["span F1"](items) == pytest.approx(span_f1_agg(items), abs=1e-12)


def test_the_other_kinds_are_those_of_sklearn():
    metrics = pytest.importorskip("sklearn.metrics")
    draw = random.Random(4)
    for _ in range(50):
        gold = [draw.choice("abc") for _ in range(30)]
        said = [draw.choice("abcd") for _ in range(30)]
        for name in ("macro", "weighted", "micro"):
            want = metrics.f1_score(gold, said, average=name, zero_division=0)
            assert aggregates.F1_KINDS[f"{name} F1"](list(zip(gold, said, strict=True))) == pytest.approx(want)


def test_masakhaner_has_an_f1_without_a_results_file(shared_data, span_f1_agg):
    path, rows = rows_of(shared_data)
    (row,) = hn.analyze(path).estimates
    assert row.mean == pytest.approx(span_f1_agg([item["f1"] for item in rows]))
    assert (row.metric, row.n_questions, row.estimator) == ("f1", 185, "bootstrap")


def test_the_first_screen_says_that_an_f1_is_computed_here(shared_data, capsys):
    path, _ = rows_of(shared_data)
    main(["analyze", str(path)])
    first = capsys.readouterr().err.splitlines()[0]
    assert first.endswith("its span F1 is computed here, as lm-eval's task of this name does")


def written(folder, rows, task, native):
    folder.mkdir(exist_ok=True)
    (folder / f"samples_{task}_{DATE}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scorer = rows[0]["filter"]
    config = {"task": task, "metric_list": [{"metric": "f1", "aggregation": SOURCE, "higher_is_better": True}]}
    whole = {"results": {task: {f"f1,{scorer}": native}}, "configs": {task: config}, "model_name": "m"}
    (folder / f"results_{DATE}.json").write_text(json.dumps(whole))
    return folder


def test_the_kind_is_the_one_that_reproduces_the_value(shared_data, tmp_path, span_f1_agg):
    draw = random.Random(5)
    _, rows = rows_of(shared_data)
    for row in rows:  # the model of the file never found an entity
        if draw.random() < 0.6:
            row["f1"][1] = [row["f1"][0].replace("LOC", "ORG") if draw.random() < 0.3 else row["f1"][0]]
    native = span_f1_agg([row["f1"] for row in rows])
    (run,) = hn.read(written(tmp_path / "a", rows, "any", native))
    (estimate,) = hn.analyze(run).estimates
    assert 0 < estimate.ci_low < estimate.mean < estimate.ci_high < 1
    assert estimate.mean == pytest.approx(native)
    assert "mean_mismatch" not in estimate.diagnostics
    assert [note for note in noted(run) if "read as span F1, which reproduces lm-eval's own value" in note]
    (other,) = hn.read(written(tmp_path / "b", rows, "any", native * 0.99))
    (estimate,) = hn.analyze(other).estimates
    assert (estimate.se, estimate.diagnostics) == (None, ("skipped_metric",))
    assert "none of span F1" in other.skipped[0].reason


def test_classes_of_several_labels_have_a_macro_f1(tmp_path):
    draw = random.Random(6)
    labels = ["belief", "desire", "intention", "none"]

    def several():
        return draw.sample(labels, draw.randrange(1, 3))

    values = [[gold, gold if draw.random() < 0.5 else several()] for gold in (several() for _ in range(80))]
    rows = [
        {"doc_id": i, "doc": {"q": i}, "target": "", "arguments": {}, "resps": [[""]], "filtered_resps": [""],
         "filter": "none", "metrics": ["f1"], "doc_hash": f"{i:064x}", "f1": value}
        for i, value in enumerate(values)
    ]  # fmt: skip
    per_class = []
    for label in labels:
        right = sum(label in a and label in b for a, b in values)
        per_class.append(2 * right / sum((label in a) + (label in b) for a, b in values))
    (run,) = hn.read(written(tmp_path / "m", rows, "tom", float(np.mean(per_class))))
    (estimate,) = hn.analyze(run).estimates
    assert estimate.mean == pytest.approx(np.mean(per_class))
    assert estimate.se > 0
    assert [note for note in noted(run) if "macro F1" in note]
