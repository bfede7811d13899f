"""The table of four models that tests of several commands read."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_four_models(path: Path) -> Path:
    """Four models, 120 questions in 24 clusters, K = 3."""
    rng = np.random.default_rng(11)
    p = rng.beta(0.7, 0.7, 120)
    rows = ["question,model,score,cluster,repeat"]
    for m, shift in enumerate((0.0, -0.05, -0.1, -0.3)):
        own = np.repeat(rng.normal(0, 0.15, 24), 5) + rng.normal(0, 0.15, 120)
        right = rng.random((120, 3)) < np.clip(p + shift + own, 0, 1)[:, None]
        rows += [f"q{i},m{m},{int(right[i, k])},c{i // 5},{k}" for i in range(120) for k in range(3)]
    path.write_text("\n".join(rows) + "\n")
    return path
