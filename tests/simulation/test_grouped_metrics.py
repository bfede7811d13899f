"""em, all rows of a question right: the jackknife over questions covers, where resampled rows covered 18%."""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run
from harness_noise.extra.corpus.estimating import estimate_corpus
from harness_noise.settings import Settings

pytestmark = pytest.mark.simulation
SIZE = 3


def em(items):
    rows = {}
    for group, right in items:
        rows[group] = rows.get(group, True) and right
    return float(np.mean(list(rows.values())))


@pytest.mark.parametrize("named", [True, False])
def test_all_rows_of_a_question_right(named):
    """Where nobody names the questions, they are found in the records; rows are never taken for clusters."""
    rng, R, covered, told, without = np.random.default_rng(3), 100, 0, 0, 0
    for _ in range(R):
        p = rng.beta(4, 1, 30)
        items = [(f"g{i}", bool(rng.random() < p[i])) for i in range(30) for _ in range(SIZE)]
        part = CorpusScores(
            task="t",
            metric="em",
            scorer="none",
            questions=Questions(tuple(map(str, range(len(items))))),
            clusters=tuple(group for group, _ in items) if named else None,
            cluster_spec="group" if named else None,
            records=tuple((item,) for item in items),
            aggregate=em,
            bounds=(0.0, 1.0),
        )
        row = estimate_corpus(part, Run(model="m", name="m", harness="h"), Settings())
        told += bool({"grouped_metric", "few_resampled"} & set(row.diagnostics))
        without += row.ci_low is None
        covered += row.ci_low is not None and row.ci_low <= 4 / 7 <= row.ci_high  # E p³ of Beta(4, 1)
    assert told == R
    assert without <= 0.05 * R
    assert covered / (R - without) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / R)


def test_of_groups_that_no_record_names_there_is_no_error_bar():
    rng = np.random.default_rng(4)
    for _ in range(20):
        p = rng.beta(4, 1, 30)
        items = [(f"g{i}+{k}", bool(rng.random() < p[i])) for i in range(30) for k in range(SIZE)]
        part = CorpusScores(
            task="t",
            metric="em",
            scorer="none",
            questions=Questions(tuple(map(str, range(len(items))))),
            records=tuple((item,) for item in items),
            aggregate=lambda records: em([(text.partition("+")[0], right) for text, right in records]),
            bounds=(0.0, 1.0),
        )
        row = estimate_corpus(part, Run(model="m", name="m", harness="h"), Settings())
        assert row.ci_low is None
        assert {"grouped_metric", "few_resampled"} & set(row.diagnostics)
