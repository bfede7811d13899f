"""Clusters inside larger ones that the file names: who is told, and who is not."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.clusters import OuterFields
from support.notes import noted
from support.tables import table

HEADER = ("question", "score", "passage", "article", "colour", "level")


def written(path, *, outer, seed=0, sign=1, noise=1000):
    """20 articles of 5 passages of 4 questions, which vary together as much as `outer` says."""
    rng = np.random.default_rng(seed)
    articles, passages = rng.normal(0, outer, 20), rng.normal(0, 0.3, (20, 5))
    own = np.random.default_rng(seed + noise).normal(0, 1, (20, 5, 4))
    rows = [
        (f"{a}.{p}.{q}", sign * articles[a] + passages[a, p] + own[a, p, q], f"{a}.{p}", f"A{a}",
         ["red", "green", "blue"][q % 3], a % 3)
        for a in range(20) for p in range(5) for q in range(4)
    ]  # fmt: skip
    return table(path, HEADER, *rows)


def test_the_outer_field_is_named(tmp_path):
    path = written(tmp_path / "t.csv", outer=1.0)
    inner, outer = (hn.analyze(path, cluster=field) for field in ("passage", "article"))
    assert "inner_clusters" in inner.rows[0].diagnostics
    assert outer.rows[0].se > 1.1 * inner.rows[0].se
    (note,) = [note for note in noted(inner) if "`cluster='article'`" in note]
    assert "each cluster (passage) lies within one value of 'article'" in note
    assert "inner_clusters" not in outer.rows[0].diagnostics
    assert not [note for note in noted(outer) if "lies within" in note]


def test_nothing_is_said_where_the_outer_field_changes_nothing(tmp_path):
    coded = []
    for seed in range(60):
        path = written(tmp_path / f"{seed}.csv", outer=0.0, seed=seed)
        coded.append("inner_clusters" in hn.analyze(path, cluster="passage").rows[0].diagnostics)
    assert np.mean(coded) < 0.22 + 3 * (0.22 * 0.78 / 60) ** 0.5  # simulated: 22%


def test_a_difference_has_it_only_where_its_own_values_vary_together(tmp_path):
    a = written(tmp_path / "a.csv", outer=1.0)
    alike, apart = (
        written(tmp_path / f"{sign}.csv", outer=1.0, sign=sign, noise=2000) for sign in (1, -1)
    )  # fmt: skip
    same, other = (hn.compare(a, b, cluster="passage") for b in (alike, apart))
    assert "inner_clusters" not in same.rows[0].diagnostics  # what the articles do to both runs cancels
    assert "inner_clusters" in other.rows[0].diagnostics
    assert any("lies within one value of 'article'" in note for note in noted(other))
    assert not any("lies within" in note for note in noted(same))


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([(f"q{i}", f"c{i // 2}", {"outer": f"o{i // 8}"}) for i in range(80)], {"outer"}),
        ([(f"q{i}", f"c{i // 2}", {"outer": f"o{i // 8}", "same": f"x{i // 2}"}) for i in range(80)], {"outer"}),
        ([(f"q{i}", f"c{i // 2}", {"few": i // 20}) for i in range(80)], set()),  # four kinds of question
        ([(f"q{i}", f"c{i}", {"kind": i % 7}) for i in range(80)], set()),  # clusters of one question
        ([(f"q{i // 4}", f"c{i // 4}", {"kind": i // 16}) for i in range(80)], set()),  # of four answers each
        ([(f"q{i}", f"c{i // 2}", {"crossed": i % 7}) for i in range(80)], set()),
        ([(f"q{i}", f"c{i // 2}", {"holes": f"o{i // 8}" if i else None}) for i in range(80)], set()),
    ],
)
def test_what_contains_the_clusters(rows, found):
    seen = OuterFields()
    for part in (rows[:50], rows[50:]):
        keys, labels, docs = zip(*part, strict=True)
        seen.add_all(keys, labels, docs[0], lambda field, docs=docs: [doc.get(field) for doc in docs])
    assert set(seen.found()) == found
