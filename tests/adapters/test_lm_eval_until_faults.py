"""An exception at every call of ours in a run that stops early: it ends with a result of lm-eval's own, every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval")
from lm_eval import evaluator

from harness_noise_adapters.lm_eval_harness import noise
from support import fault_walk as walk
from support import lm_eval_models as toys
from support.lm_eval_live import native_part, save
from support.slow import rest_slow

NATIVE = evaluator.evaluate
N = 40
OURS = ("of_lm_eval/growing.py", "live/repeats.py:Asking", "of_lm_eval/population.py", "stopping/rules.py",
        "stopping/observed.py", "analysis/drawing.py", "stopping/growing.py")  # fmt: skip
BEFORE = ("StoppingRule.parse", "StoppingRule.__post_init__", "number_wanted")
"""What the user's own call does before lm-eval is called."""
DOORS = ("build_all_requests", "doc_iterator", "answers", "Growing.evaluate")
"""What lm-eval calls, and what is called in its place; an exception at its entry or return could come from the
interpreter only."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faults")
    toys.write_task(path, "gen", toys.docs(N))
    save(path, path / "b", ["gen"], toys.HashModel(seed=9, share=0.2))
    return path


def values(results: dict[str, Any]) -> dict[str, Any]:
    found = native_part(results)
    found["config"].pop("samples", None)
    return found


@pytest.mark.parametrize("share", [0.95, 0.55], ids=["the first answers decide", "second answers decide"])
@pytest.mark.parametrize("every", rest_slow([24, 1]))
def test_an_exception_anywhere(folder: Path, every: int, share: float) -> None:
    models: list[toys.HashModel] = []

    def run() -> dict[str, Any]:
        models.append(toys.HashModel(seed=1, share=share))
        with noise(until="decided", against=str(folder / "b"), sample=39, repeats=2, futility=False):
            return toys.simple_evaluate(folder, ["gen"], models[-1])

    run()
    early = run()
    part = early["config"]["samples"]["gen"]
    assert (len(part) < 39) == (share == 0.95)
    assert (early["configs"]["gen"]["repeats"] == 2) == (share < 0.95)
    plain = toys.HashModel(seed=1, share=share)
    known = [values(early), values(toys.simple_evaluate(folder, ["gen"], plain))]
    points = [
        point
        for point in walk.points(run)
        if any(name in f"{point.file}:{point.name}" for name in OURS)
        and not point.name.endswith((*BEFORE, *DOORS))
        and "<genexpr>" not in point.name
    ]
    assert len(points) > 60
    fired = 0
    for point in walk.share(points)[::every]:
        found, struck = walk.raising(point, RuntimeError("injected fault"), run)
        fired += struck
        assert evaluator.evaluate is NATIVE, point
        assert not {"generate_until", "loglikelihood"} & set(vars(models[-1])), point
        ours = values(found)
        if ours not in known:  # all that the sample allows
            asked = found["config"]["samples"]
            again = toys.simple_evaluate(folder, ["gen"], toys.HashModel(seed=1, share=share), samples=asked)
            assert ours == values(again), point
    assert fired > 2
