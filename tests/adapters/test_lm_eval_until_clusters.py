"""Clusters of a live run that is compared while it grows: its own, or those of the run that it is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.notes import noted

pytest.importorskip("lm_eval")

from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError
from harness_noise.extra.stopping.growing import observe
from harness_noise.extra.stopping.rules import StoppingRule
from harness_noise.io.registry import read
from harness_noise.settings import Settings
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import save

N = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clusters")
    toys.write_task(path, "gen", toys.docs(N))
    toys.write_task(path, "few", toys.docs(40, start=500))
    return path


def better() -> toys.HashModel:
    return toys.HashModel(seed=1, share=0.9)


def of(run: Any, task: str, metric: str, scorer: str) -> Any:
    (found,) = [item for item in run.scores if (item.task, item.metric, item.scorer) == (task, metric, scorer)]
    return found


@pytest.fixture(scope="module")
def clustered(folder: Path) -> str:
    """A finished run of a model that knows less, clustered by its templates."""
    out = folder / "clustered"
    with noise(cluster="template"):
        save(folder, out, ["gen", "few"], toys.HashModel(seed=9, share=0.35))
    return str(out)


def test_the_clusters_that_drew_the_order_are_those_of_every_row(folder: Path, clustered: str, tmp_path: Path) -> None:
    with noise(until="decided", against=clustered) as session:
        results = save(folder, tmp_path / "carried", ["gen", "few"], better())
    with noise(until="decided", against=clustered, cluster="template"):
        named = save(folder, tmp_path / "named", ["gen", "few"], better())
    assert session.problems == []
    assert results["noise"]["estimates"] == named["noise"]["estimates"]
    assert results["noise"]["sequential"] == named["noise"]["sequential"]
    assert all(row["cluster"] == "template" for row in results["noise"]["estimates"])
    assert results["results"] == named["results"]
    assert results["samples"] == named["samples"]
    (again,) = read(str(tmp_path / "carried"), ReadOptions())
    assert all(part.clusters is not None for part in again.scores)
    (note,) = [note for note in noted(session.analysis) if "whole clusters are asked" in note]
    assert note.startswith("few and 1 more: clustered by template, as ")


def test_clusters_that_the_user_does_not_want_are_in_no_look(folder: Path, clustered: str) -> None:
    with noise(until="decided", against=clustered, cluster={"gen": "none"}) as session:
        toys.simple_evaluate(folder, ["gen"], better())
    (look,) = session.analysis.sequential
    part = of(session.collected.run, "gen", "exact_match", "strict")
    b = of(read(clustered, ReadOptions(cluster="none"))[0], "gen", "exact_match", "strict")
    observed = observe([part], [b], Settings())
    assert (part.clusters, b.clusters) == (None, None)
    assert len(part.questions) == look.n_asked == len(StoppingRule().order(N).asked(look.look))
    assert look.estimate_unadjusted == pytest.approx(observed.estimate, abs=1e-12)
    (note,) = [note for note in noted(session.analysis) if "`cluster` none" in note]
    assert note.startswith("gen: ")


def test_two_crossed_ways_of_the_other_run_cannot_be_drawn(folder: Path, tmp_path: Path) -> None:
    with noise(cluster="template*label"):
        save(folder, tmp_path, ["gen"], toys.HashModel(seed=9, share=0.35))
    model = better()
    with pytest.raises(InputError, match="two crossed ways"), noise(until="decided", against=str(tmp_path)):
        toys.simple_evaluate(folder, ["gen"], model)
    assert model.calls == []
