"""What a live run says: when it is true, before it costs anything, and kept with the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.notes import noted

pytest.importorskip("lm_eval")

from lm_eval.api.registry import register_model

from harness_noise.cli import main
from harness_noise.report.summary import summarise
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.live.hook import Session
from harness_noise_adapters.lm_eval_harness.live.options import Options
from harness_noise_adapters.lm_eval_harness.live.sessions import installed
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, native_part, run, saved

pytestmark = pytest.mark.usefixtures("quick_lm_eval")
LOADED: list[int] = []


@pytest.fixture(autouse=True)
def _none_loaded() -> None:
    LOADED.clear()


@register_model("sim-slow")
class SlowToLoad(toys.HashModel):
    def __init__(self, **options: Any) -> None:
        LOADED.append(1)
        super().__init__(**options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")
    toys.write_task(path, "gen", toys.docs(12))
    toys.write_task(path, "choice", toys.docs(12), toys.CHOICE)
    by_size = {"metric": "exact_match", "weight_by_size": True, "filter_list": ["strict"]}
    toys.write_group(path, "both", ["gen"], [by_size])
    return path


# ---- before it costs anything ----


@pytest.mark.parametrize("spec", ["passage", "gen=passage", "{{passage}}"])
def test_a_wrong_cluster_is_refused_before_the_model_is_loaded(
    folder: Path, spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--model", "sim-slow", *run(folder)[3:], "--noise", "--noise_cluster", spec]
    assert main(["lm-eval", *arguments]) == 2
    assert "--noise_cluster does not fit" in capsys.readouterr().err
    assert LOADED == []


@pytest.mark.parametrize("spec", ["gne=template", "both=none"])
def test_so_is_one_of_a_task_that_is_not_in_the_run(
    folder: Path, spec: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["run", "--model", "sim-slow", *run(folder, tasks="both,choice")[3:], "--noise"]
    assert main(["lm-eval", *arguments, "--noise_cluster", spec]) == 2
    task = spec.partition("=")[0]
    assert f"--noise_cluster {spec}: there is no task {task}. The tasks are choice, gen" in capsys.readouterr().err
    assert LOADED == []
    # the default of many runs may name tasks of others
    monkeypatch.setenv("HARNESS_NOISE_CLUSTER", f"{spec},gen=template")
    monkeypatch.setenv("HARNESS_NOISE_REPEATS", "2,other*=3")
    with installed(Session(Options.from_environment())) as session:
        toys.simple_evaluate(folder, ["gen"])
    assert (estimate(session, "gen").cluster, estimate(session, "gen").repeats_max) == ("template", 2)


@pytest.mark.parametrize("spec", ["template", "auto", "task"])
def test_a_cluster_that_fits_changes_nothing_before_the_run(folder: Path, tmp_path: Path, spec: str) -> None:
    found = []
    for name, options in (("plain", ()), ("noisy", ("--noise", "--noise_cluster", spec))):
        arguments = ["run", "--model", "sim-state", *run(folder)[3:], "--log_samples", "--output_path"]
        assert main(["lm-eval", *arguments, str(tmp_path / name), *options]) == 0
        results, _ = saved(tmp_path / name)
        found.append(native_part(results)["results"])
    assert found[0] == found[1]


def test_a_fault_while_tasks_are_looked_at_is_left_to_lm_eval(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--model", "sim-slow", *run(folder, tasks="no_such_task")[3:]]
    assert main(["lm-eval", *arguments, "--noise", "--noise_cluster", "template"]) == 1
    assert "no_such_task" in "".join(capsys.readouterr())


def test_help_names_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lm-eval", "--help"]) == 0
    shown = capsys.readouterr().out
    for flag in ("", "_repeats", "_cluster", "_group", "_config", "_level", "_no_rows", "_no_reseed"):
        assert f"--noise{flag}" in shown
    assert main(["lm-eval", "run", "--help"]) == 0
    assert "answers per question of generate_until tasks" in capsys.readouterr().out


# ---- only where it is true ----


@pytest.mark.parametrize("sampled", [True, False])
def test_the_cache_is_mentioned_only_where_it_answers(tmp_path: Path, sampled: bool) -> None:
    base = toys.GENERATE | {"generation_kwargs": {"until": ["\n"], "do_sample": sampled, "temperature": 0.7}}
    toys.write_task(tmp_path, "cached", toys.docs(12), base)
    said = []
    for _ in range(2):
        with noise(repeats=3) as session:
            toys.simple_evaluate(tmp_path, ["cached"], "sim-hash", use_cache=str(tmp_path / "answers"))
        said.append([note for note in noted(session.analysis) if "--use_cache" in note])
    assert said[0] == []  # a fresh cache answers nothing
    assert len(said[1]) == (0 if sampled else 1)
    if not sampled:
        assert said[1][0].startswith("12 of the harness's own 12 answers come from --use_cache")


class Adaptive(toys.HashModel):
    """Looks for its largest batch in every call, as lm-eval's hf model with `batch_size: auto` does."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = 0
        self.used: list[int] = []

    def _detect_batch_size(self, requests: Any = None, pos: int = 0) -> int:
        self.looked += 1
        return 32

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        self.used.append(self._detect_batch_size())
        return super().generate_until(requests, disable_tqdm)


def test_the_batch_size_is_looked_for_once(folder: Path) -> None:
    model = Adaptive()
    with noise(repeats=3):
        toys.simple_evaluate(folder, ["gen"], model)
    assert (model.looked, model.used) == (1, [32] * 3)
    assert not {"_detect_batch_size", "generate_until"} & set(vars(model))


def test_a_run_that_only_predicts_has_no_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--noise", "--noise_repeats", "2", "--predict_only", "--output_path", str(folder / "out"))
    assert main(["lm-eval", *run(folder, *options)]) == 0
    shown = capsys.readouterr()
    results, _ = saved(folder / "out")
    assert results["noise"]["estimates"] == []
    assert any("only predicts" in note for note in noted(results["noise"]["notes"]))
    assert "only predicts" in shown.err
    assert "Mean" not in shown.out  # lm-eval's own table has the row, ours is not there


# ---- kept, and shown ----


def test_every_note_is_kept_with_the_numbers(folder: Path) -> None:
    with noise(repeats=3) as session:
        results = toys.simple_evaluate(folder, ["gen", "choice"])
    kept = noted(results["noise"]["notes"])
    assert kept == noted(session.analysis)
    assert set(session.warnings) <= set(kept)
    assert any("Asked once" in note for note in kept)


def test_a_sentence_for_every_task_and_group(folder: Path) -> None:
    with noise(repeats=3, groups={"asked": "*"}) as session:
        toys.simple_evaluate(folder, ["both", "choice"])
    sentences = summarise(session.analysis).sentences
    for name in ("gen", "choice", "both"):
        assert sum(f" on {name} (" in line for line in sentences) == 1
    assert estimate(session, "gen").mean is not None


@pytest.mark.parametrize(("cluster", "words"), [(None, "few questions, fewer"), ("template", "few clusters, fewer")])
def test_few_degrees_of_freedom_say_what_is_few(tmp_path: Path, cluster: str | None, words: str) -> None:
    toys.write_task(tmp_path, "few", toys.docs(9))
    with noise(repeats=3, cluster=cluster) as session:
        toys.simple_evaluate(tmp_path, ["few"])
    (text,) = [one.text for one in summarise(session.analysis).legend if one.code == "few_clusters"]
    assert text.startswith(words)
