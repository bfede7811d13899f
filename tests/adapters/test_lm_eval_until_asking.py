"""What a live run that looks at its answers keeps of them, and what it refuses or says before the first question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.notes import noted

pytest.importorskip("lm_eval")
from lm_eval.api.instance import Instance

from harness_noise.errors import InputError
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.live import hook
from harness_noise_adapters.lm_eval_harness.live.options import Options
from support import lm_eval_models as toys
from support.lm_eval_live import native_part, save

N = 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("asking")
    toys.write_task(path, "gen", toys.docs(N))
    toys.write_task(path, "few", toys.docs(24, start=500))
    toys.write_task(path, "choice", toys.docs(60, start=700), toys.CHOICE)
    save(path, path / "b", ["gen", "choice"], toys.HashModel(seed=9, share=0.3))
    return path


class Drafting(toys.HashModel):
    """Asks itself for a draft of every answer, with a request that nobody keeps, and for each answer once more."""

    def __init__(self) -> None:
        super().__init__(seed=1, share=0.7)
        self.wrong = 0
        self.again = False

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        found = []
        for request in requests:
            prompt = request.args[0]
            if prompt.startswith("draft of ") or self.again:
                found.append(prompt if prompt.startswith("draft of ") else self.answer(prompt))
                continue
            (draft,) = self.generate_until([Instance("generate_until", {}, (f"draft of {prompt}", {}), 0)])
            self.wrong += draft != f"draft of {prompt}"
            self.again = True
            found += self.generate_until([request])
            self.again = False
        return found


def test_the_run_compared_with_is_no_reference_of_the_looks_too(folder: Path) -> None:
    against, looks = str(folder / "b"), []
    for more in ({}, {"complete": [against]}):
        with noise(until="decided", against=against, **more) as session:
            toys.simple_evaluate(folder, ["gen"], toys.HashModel(seed=3, share=0.4))
        (last,) = session.analysis.sequential
        assert 0 < last.n_asked < N
        looks.append(last)
    assert looks[0] == looks[1]


@pytest.mark.parametrize("options", [{"sample": "60"}, {"sample": "60", "repeats": 3}, {"repeats": 3}])
def test_what_a_model_asks_of_itself_is_answered_by_the_model(folder: Path, options: dict[str, Any]) -> None:
    model = Drafting()
    with noise(**options) as session:
        results = toys.simple_evaluate(folder, ["gen"], model)
    assert session.problems == []
    assert model.wrong == 0
    assert set(model.asked.values()) == {options.get("repeats", 1)}
    part = results["config"].pop("samples", None)
    plain = toys.simple_evaluate(folder, ["gen"], Drafting(), samples=part)
    plain["config"].pop("samples", None)
    ours, theirs = native_part(results), native_part(plain)
    for found in (ours, theirs):
        found["config"].pop("samples", None)
    assert ours == theirs


def test_further_answers_are_asked_anew_where_a_model_asks_itself(folder: Path) -> None:
    model = Drafting()
    with noise(repeats="auto") as session:
        toys.simple_evaluate(folder, ["few"], model)
    (K,) = set(model.asked.values())
    assert K > 2
    (found,) = [item for item in session.analysis.estimates if item.scorer == "strict"]
    assert (found.repeats_max, model.wrong) == (K, 0)
    with noise(repeats=K) as fixed:
        toys.simple_evaluate(folder, ["few"], Drafting())
    (same,) = [item for item in fixed.analysis.estimates if item.scorer == "strict"]
    assert (found.mean, found.se_prediction) == (same.mean, same.se_prediction)


def test_a_run_that_stopped_early_is_refused_as_the_one_to_compare_with(folder: Path, tmp_path: Path) -> None:
    with noise(until="decided", against=str(folder / "b")):
        results = save(folder, tmp_path, ["gen"], toys.HashModel(seed=1, share=0.95))
    assert len(results["config"]["samples"]["gen"]) < N
    model = toys.HashModel(seed=4)
    with pytest.raises(InputError, match="stopped early itself after"), noise(until="decided", against=str(tmp_path)):
        toys.simple_evaluate(folder, ["gen"], model)
    assert model.calls == []


@pytest.mark.parametrize(
    ("given", "where", "words"),
    [
        ({"metric": "acc"}, "--noise", "noise_metric does nothing without --noise_until or --noise_repeats"),
        ({"until": "decided"}, "--noise", "name it with --noise_against RUN"),
        ({"until": "decided"}, "noise options", "name it with `against='RUN'`"),
        ({"until": "decided"}, "environment HARNESS_NOISE_…", "name it with HARNESS_NOISE_AGAINST=RUN"),
        ({"until": "decided", "against": ""}, "--noise", "noise_against must be one text .* name one finished run"),
        ({"until": "decided", "against": ["a", "b"]}, "--noise", "not .'a', 'b'.: name one finished run"),
        ({"until": "se=0.1", "metric": ["a"]}, "--noise", "metric must be one text"),
        ({"until": " "}, "--noise", "until must be one text"),
        ({"complete": 5}, "--noise", "noise_complete must be one text .* all questions"),
        ({"complete": ["a", ""]}, "--noise", "complete must be one text"),
    ],
)
def test_options_that_mean_nothing(given: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Options.of(given, where)


@pytest.mark.parametrize("options", [{"repeats": "auto"}, {"sample": "20"}])
def test_an_lm_eval_that_asks_no_parts_is_refused(options: dict[str, str]) -> None:
    """`evaluate` of 0.4.8 knows no `samples`."""

    def evaluate(lm: Any, task_dict: Any, limit: Any = None, log_samples: bool = True) -> Any:
        raise AssertionError("it was called")

    with pytest.raises(InputError, match=r"use 0\.4\.9 or newer"):
        hook.wrap(evaluate, hook.Session(Options.of(options)))(toys.HashModel(), {})


def test_options_that_mean_something() -> None:
    assert Options.of({"metric": "acc", "repeats": "auto"}).metric == "acc"
    assert Options.of({"until": "decided", "against": Path("a")}).against == "a"
    assert Options.of({"complete": ("a", "b")}).complete == ("a", "b")
    assert Options.of({"complete": []}).complete == ()


def test_a_deciding_metric_that_nobody_has_measured_is_refused(folder: Path) -> None:
    model = toys.HashModel()
    options = {"until": "decided", "against": str(folder / "b"), "metric": "exact_mach"}
    with pytest.raises(InputError, match=r"exact_match,strict.*name one of them"), noise(**options):
        toys.simple_evaluate(folder, ["gen"], model)
    assert model.calls == []


def test_several_decisions_each_at_the_error_of_one_are_said(folder: Path) -> None:
    with noise(until="decided", against=str(folder / "b")) as session:
        toys.simple_evaluate(folder, ["gen", "choice"], toys.HashModel(seed=1, share=0.95))
    (note,) = [note for note in noted(session.analysis) if "decides at" in note]
    assert "each of the 2 tasks decides at 5%: of 2 that do not differ, 0.1 would be called different" in note
    assert "`level='0.975'`" in note
    assert note in session.warnings
