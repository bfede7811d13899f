"""Degrees of freedom of corrected contrasts."""

import numpy as np
import pytest

from harness_noise.extra.labels.contrasts import correction_df
from harness_noise.stats.contrast import design


def test_degrees_of_freedom_that_labels_leave():
    """One is spent in each task, and one on the slope of a task with 30 labelled questions or more."""
    labelled, tasks = np.ones(66, dtype=bool), np.repeat([0, 1], [60, 6])
    assert correction_df(labelled, design(66, strata=tasks)) == pytest.approx(65 - 2)
    assert correction_df(labelled, design(66, np.arange(66) % 22, strata=tasks)) == pytest.approx(21 - 1)
    assert correction_df(labelled & (tasks == 1), design(66, strata=tasks)) == pytest.approx(5)
