"""From the values of one task of lm-eval's to a metric over all its questions."""

import numpy as np

from harness_noise.data.questions import Questions
from harness_noise_adapters.lm_eval_harness.scoring.gather import Aggregation, Gathered, Scored, TaskFacts, gather

TABLE = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])


def whole(own, table, value, function, **facts):
    found, out = Scored(raw=[]), Gathered()
    for document, (single, row) in enumerate(zip(own, table, strict=True)):
        found.add(document, single, list(row))
    task = TaskFacts(
        name="toy", questions=Questions(tuple("abcd")), reported={("acc", "none"): value}, higher_is_better={},
        aggregations={"acc": Aggregation("largest", registered=False, function=lambda: function)}, **facts,
    )  # fmt: skip
    gather(task, {("acc", "none"): found}, out)
    (part,) = out.corpus
    return part


def test_any_other_aggregation_is_resampled():
    part = whole(TABLE[:, 0], TABLE, 1.0, max)
    assert (part.native, part.native_is_first, part.aggregate([1.0, 3.0])) == (1.0, True, 3.0)
    assert part.records[1] == (0.0, 0.0, 1.0)


def test_the_value_of_a_vote_is_not_that_of_any_answers():
    table = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    part = whole(np.median(table, axis=1), table, 0.9, lambda items: max(items) - 0.1, used={"none": 3})
    assert (part.native, part.native_is_first) == (None, False)
