"""How many answers a live run asks for: by task, and until more of them no longer pay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("lm_eval")

from harness_noise.errors import InputError
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.live.options import RepeatsSpec
from support import lm_eval_models as toys
from support.lm_eval_live import native_part, save

N = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("repeats")
    toys.write_task(path, "gen", toys.docs(N))
    toys.write_task(path, "few", toys.docs(40, start=500))
    toys.write_task(path, "more", toys.docs(20, start=600))
    toys.write_task(path, "choice", toys.docs(90, start=700), toys.CHOICE)
    mean = {"metric": "exact_match", "weight_by_size": True, "filter_list": ["strict", "flexible"]}
    toys.write_group(path, "both", ["gen", "few"], [mean])
    return path


@pytest.fixture(scope="module")
def worse(folder: Path) -> str:
    """A finished run of a model that knows less."""
    save(folder, folder / "b", ["gen", "few"], toys.HashModel(seed=9, share=0.35))
    return str(folder / "b")


class Mixed(toys.HashModel):
    """Answers the task `few` greedily, the others by chance."""

    def draw(self, prompt: str) -> float:
        self.asked[prompt] += 1
        return toys.uniform(self.seed, prompt, 0 if self.greedy(prompt) else self.asked[prompt])

    @staticmethod
    def greedy(prompt: str) -> bool:
        """Whether it is a question of `few`."""
        return 500 <= int(prompt.split()[2]) < 600

    def per_task(self) -> dict[bool, set[int]]:
        """Whether a task is answered greedily → how often its questions were asked."""
        found: dict[bool, set[int]] = {True: set(), False: set()}
        for prompt, often in self.asked.items():
            found[self.greedy(prompt)].add(often)
        return found


def test_answers_until_more_of_them_no_longer_pay(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = toys.HashModel(seed=3, share=0.7)
    with noise(repeats="auto") as session:
        results = toys.simple_evaluate(folder, ["few", "more"], model)
    assert session.problems == []
    K = {row.task: row.repeats_max for row in session.analysis.estimates}
    assert Counter(model.asked.values()) == Counter({K["few"]: 40}) + Counter({K["more"]: 20})
    assert {name: results["configs"][name]["repeats"] for name in K} == K
    lines = [line for line in capsys.readouterr().err.splitlines() if "answers per question" in line]
    for task, k in K.items():
        (last,) = [line for line in lines if f" {task}: " in line][-1:]
        assert last.endswith(": enough") or k == 16
    plain = toys.simple_evaluate(folder, ["few", "more"], toys.HashModel(seed=3, share=0.7))
    assert native_part(results) == native_part(plain)
    # each answer is the one that a fixed number of repeats would have given
    with noise(repeats=K) as fixed:
        toys.simple_evaluate(folder, ["few", "more"], toys.HashModel(seed=3, share=0.7))
    for one, other in zip(session.collected.run.scores, fixed.collected.run.scores, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_auto_with_a_rule_keeps_one_number_of_answers(folder: Path, worse: str) -> None:
    model = toys.HashModel(seed=1, share=0.9)
    with noise(repeats="auto", until="decided", against=worse) as session:
        toys.simple_evaluate(folder, ["gen"], model)
    (look,) = session.analysis.sequential
    assert len(set(model.asked.values())) == 1
    assert len(model.asked) == look.n_asked < N


def test_answers_that_never_differ_are_enough(folder: Path) -> None:
    model = toys.HashModel(same=True)
    with noise(repeats="auto"):
        toys.simple_evaluate(folder, ["gen"], model)
    assert set(model.asked.values()) == {2}


def test_a_task_whose_answers_never_differ_is_asked_twice_whatever_the_others_want(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Mixed(seed=3, share=0.7)
    with noise(repeats="auto") as session:
        results = toys.simple_evaluate(folder, ["few", "more"], model)
    assert session.problems == []
    asked = model.per_task()
    assert asked[True] == {2}
    (K,) = asked[False]
    assert K > 2
    assert {name: results["configs"][name]["repeats"] for name in ("few", "more")} == {"few": 2, "more": K}
    told = [line for line in capsys.readouterr().err.splitlines() if "never differ" in line]
    assert len(told) == 1


def test_in_a_group_too(folder: Path) -> None:
    model = Mixed(seed=3, share=0.7)
    with noise(repeats="auto"):
        toys.simple_evaluate(folder, ["both"], model)
    asked = model.per_task()
    assert asked[True] == {2}
    assert min(asked[False]) > 2


class Late(toys.HashModel):
    """Its answers differ only on the questions that come late."""

    def __init__(self) -> None:
        super().__init__(seed=1, share=0.7)
        self.prompts: dict[str, int] = {}

    def draw(self, prompt: str) -> float:
        place = self.prompts.setdefault(prompt, len(self.prompts))
        self.asked[prompt] += 1
        return toys.uniform(self.seed, prompt, self.asked[prompt] if place >= 60 else 0)


@pytest.mark.parametrize("options", [{"until": "se=0.015"}, {"until": "decided", "looks": "anytime", "margin": 0.001}])
def test_how_many_pay_is_judged_again_as_blocks_come(folder: Path, worse: str, options: dict[str, Any]) -> None:
    against = {"against": worse} if options["until"] == "decided" else {}
    model = Late()
    model.share = 0.35 if against else 0.7
    with noise(repeats="auto", **options, **against) as session:
        toys.simple_evaluate(folder, ["gen"], model)
    assert session.problems == []
    (look,) = session.analysis.sequential
    assert len(model.asked) == look.n_asked > 100
    (K,) = set(model.asked.values())  # the early ones were asked again
    assert K > 2
    rows = [row for row in session.analysis.estimates if row.task == "gen"]
    assert all((row.repeats_min, row.repeats_max, row.n_questions) == (K, K, look.n_asked) for row in rows)
    (part,) = [item for item in session.collected.run.scores if (item.task, item.scorer) == ("gen", "strict")]
    (row,) = [row for row in rows if row.scorer == "strict"]
    assert row.mean == pytest.approx(part.values.mean())
    assert not np.isnan(part.values).any()


def test_each_task_its_own_number_of_answers(folder: Path) -> None:
    model = toys.HashModel(seed=3, share=0.7)
    with noise(repeats={"*": 3, "f*": 5, "m*": "auto", "choice": 1}) as session:
        results = toys.simple_evaluate(folder, ["few", "more", "gen", "choice"], model)
    K = {name: results["configs"][name]["repeats"] for name in ("few", "gen", "more")}
    assert (K["few"], K["gen"]) == (5, 3)
    assert K["more"] > 2
    asked = Counter(model.asked.values())
    assert asked == Counter({5: 40}) + Counter({3: N}) + Counter({K["more"]: 20})
    assert not any("scored from log-likelihoods" in note for note in noted(session.analysis))
    (row,) = [row for row in session.analysis.estimates if (row.task, row.scorer) == ("few", "strict")]
    assert (row.repeats_min, row.repeats_max) == (5, 5)


def test_a_pattern_that_matches_no_task_is_refused(folder: Path) -> None:
    model = toys.HashModel()
    with (
        pytest.raises(InputError, match=r"`repeats='gqpa\*=8'`: no task matches. This run has few, more"),
        noise(repeats=["5", "gqpa*=8"]),
    ):
        toys.simple_evaluate(folder, ["few", "more"], model)
    assert model.calls == []


@pytest.mark.parametrize(
    ("given", "begins", "grows"),
    [
        (5, {"gsm8k": 5, "gpqa_main": 5}, set()),
        ("5,gpqa*=8", {"gsm8k": 5, "gpqa_main": 8}, set()),
        (["5", "gpqa*=8"], {"gsm8k": 5, "gpqa_main": 8}, set()),
        (["gpqa*=8", "5"], {"gsm8k": 5, "gpqa_main": 5}, set()),
        (["gpqa*=8"], {"gsm8k": None, "gpqa_main": 8}, set()),
        (["auto", "gpqa*=8"], {"gsm8k": 2, "gpqa_main": 8}, {"gsm8k"}),
        ({"*": 4, "gsm8k": "auto"}, {"gsm8k": 2, "gpqa_main": 4}, {"gsm8k"}),
        (None, {"gsm8k": None, "gpqa_main": None}, set()),
    ],
)
def test_the_ways_to_say_it(given: Any, begins: dict[str, int | None], grows: set[str]) -> None:
    spec = RepeatsSpec.parse(given, "--noise")
    assert {task: spec.begin(task) for task in begins} == begins
    assert {task for task in begins if spec.grows(task)} == grows


@pytest.mark.parametrize("given", ["gpqa*=", "gpqa*=x", "0", {"gpqa": -1}, ["2.5"], True, ""])
def test_what_is_no_number_of_answers(given: Any) -> None:
    with pytest.raises(InputError, match="--noise: repeats must be"):
        RepeatsSpec.parse(given, "--noise")


class Adaptive(toys.HashModel):
    """Looks for its largest batch in every call, as lm-eval's hf model with `batch_size: auto` does."""

    def __init__(self) -> None:
        super().__init__(seed=1, share=0.9)
        self.lengths: list[int | None] = []

    def _detect_batch_size(self, requests: Any = None, pos: int = 0) -> int:
        self.lengths.append(None if not requests else len(requests[pos][1] + requests[pos][2]))
        return 32

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        self._detect_batch_size()
        return super().generate_until(requests, disable_tqdm)

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        longest = max((request.args for request in requests), key=lambda pair: len(pair[0]) + len(pair[1]))
        self._detect_batch_size([(longest, *map(list, longest))])
        return super().loglikelihood(requests, disable_tqdm)


def test_a_run_in_blocks_looks_for_its_batch_size_once(folder: Path, worse: str) -> None:
    model = Adaptive()
    with noise(until="se=0.03", repeats=2) as session:
        toys.simple_evaluate(folder, ["gen", "choice"], model)
    assert session.problems == []
    assert min(look.look for look in session.analysis.sequential) > 3
    assert model.lengths.count(None) == 1
    lengths = [length for length in model.lengths if length is not None]
    assert lengths == sorted(set(lengths))  # only for requests that are longer than all before
    assert len(lengths) < 5
    assert "_detect_batch_size" not in vars(model)
