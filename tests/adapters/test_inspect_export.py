"""Inspect logs written again with their noise: what changes, and what must not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from scipy import stats

import harness_noise as hn
from harness_noise.analysis.mean import analyze_run
from harness_noise.cli import main
from harness_noise.data.scores import ReadOptions
from harness_noise.io import registry as adapters

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.log import read_eval_log, write_eval_log

from support.inspect_evals import NAMES, change, unwrap_all

Z2 = stats.norm.ppf(0.975) ** 2
BELOW = [name.replace("noise_data", "noise_data_upper") for name in NAMES]
"""What is added where the estimate of the data variance is below 0."""


def export(path, out, cluster="passage", level=0.95):
    ((adapter, where),) = adapters.find(path)
    settings = hn.Settings(level=level, cluster=cluster)
    return adapter.write(where, out, lambda run: analyze_run(run, settings), ReadOptions(cluster=cluster))


def members(path: Path) -> dict[str, bytes]:
    """Every live member of an `.eval` file but its header, as it is stored (zstd and all)."""
    from zipfile import ZipFile

    with ZipFile(path) as archive:
        return {item.filename: archive.read(item) for item in archive.infolist() if item.filename != "header.json"}


def body(path: Path):
    """What an export must not touch."""
    if path.suffix == ".eval":
        return members(path)
    data = json.loads(path.read_bytes())
    old = {key: value for key, value in data["results"].items() if key != "scores"}
    return {key: value for key, value in data.items() if key not in ("results", "log_updates", "metadata")} | old


def of(log):
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


@pytest.fixture(params=["eval", "json"])
def source(request, inspect_logs, tmp_path):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / f"{inspect_logs.a.stem}.{request.param}"
    if request.param == "eval":
        shutil.copy(inspect_logs.a, path)
    else:
        log = read_eval_log(str(inspect_logs.a))
        log.samples[0].scores["match"].metadata = {"odd": float("nan")}
        write_eval_log(log, str(path))
    return path


def test_into_another_folder(source, tmp_path):
    before = source.read_bytes()
    (target,) = export(source, tmp_path / "out")
    assert target == tmp_path / "out" / source.name
    assert source.read_bytes() == before
    old, new = read_eval_log(str(source)), read_eval_log(str(target))
    estimate = hn.analyze(source, cluster="passage").estimates[0]
    want = [
        estimate.se, estimate.ci_low, estimate.ci_high, estimate.se_total, estimate.se_data_upper,
        estimate.se_prediction,
    ]  # fmt: skip
    assert estimate.var_data < 0
    assert list(of(new)) == ["accuracy", "stderr", *BELOW]
    assert list(of(new).values()) == [*of(old).values(), *want]
    metric = new.results.scores[0].metrics["noise_se"]
    assert (metric.group, metric.params) == ("noise", {"cluster": "passage"})
    assert old.eval == new.eval
    assert old.stats == new.stats
    assert old.plan == new.plan
    if source.suffix == ".eval":
        assert members(source) == members(target)
    else:
        left, right = json.loads(source.read_bytes()), json.loads(target.read_bytes())
        for key in left.keys() - {"results", "metadata"}:
            assert json.dumps(left[key]) == json.dumps(right[key]), key
        tail = source.read_bytes().index(b'\n  "samples"')
        assert target.read_bytes().endswith(source.read_bytes()[tail:])


def test_the_edit_is_on_record(source, tmp_path):
    (target,) = export(source, tmp_path / "out", level=0.9)
    log = read_eval_log(str(target), header_only=True)
    (update,) = log.log_updates
    assert update.provenance.author == f"harness-noise {hn.__version__}"
    assert {key: float(x) if key == "level" else x for key, x in log.metadata["harness_noise"].items()} == {
        "version": hn.__version__, "level": 0.9, "se": "cr2", "interval": "auto", "missing": "drop",
        "cluster": "passage",
    }  # fmt: skip
    assert log.eval.metadata in (None, {})


def test_twice_is_once(source, tmp_path):
    (target,) = export(source, tmp_path / "out")
    once = (target.read_bytes(), target.stat().st_mtime_ns, target.stat().st_ino)
    export(source, tmp_path / "out")
    assert (target.read_bytes(), target.stat().st_mtime_ns, target.stat().st_ino) == once
    export(target, target.parent)
    assert (target.read_bytes(), target.stat().st_mtime_ns, target.stat().st_ino) == once


def test_in_place_and_with_other_settings(source, tmp_path):
    export(source, source.parent)
    first = read_eval_log(str(source), header_only=True)
    export(source, source.parent, cluster="none", level=0.8)
    second = read_eval_log(str(source), header_only=True)
    assert list(of(first)) == ["accuracy", "stderr", *BELOW]
    assert list(of(second)) == ["accuracy", "stderr", *NAMES]  # the data variance is above 0 without the clusters
    assert second.results.scores[0].metrics["noise_se"].params == {}
    assert float(second.results.scores[0].metrics["noise_ci_low"].metadata["level"]) == 0.8
    assert len(second.log_updates) == 2
    assert sorted(path.name for path in source.parent.iterdir()) == [source.name]


def test_an_augmented_log_keeps_its_clusters(source, tmp_path):
    (target,) = export(source, tmp_path / "out")
    assert hn.analyze(source).estimates[0].n_clusters == 12
    assert hn.analyze(target).estimates[0].n_clusters == 4


def test_inspect_still_works_with_it(source, tmp_path):
    from inspect_ai.log import list_eval_logs, recompute_metrics

    unwrap_all()  # of a test before
    (target,) = export(source, tmp_path / "out")
    assert len(list_eval_logs(str(tmp_path / "out"))) == 1
    log = read_eval_log(str(target))
    recompute_metrics(log)
    assert list(of(log)) == ["accuracy", "stderr"]  # ours would be stale, and are gone; see test_inspect_rescore


def test_a_live_log_is_left_alone(canned, tmp_path):
    log = canned.eval(canned.task(), tmp_path, epochs=3, metadata={"noise": True, "noise_cluster": "passage"})[0]
    path = Path(log.location)
    before = path.read_bytes()
    ((adapter, where),) = adapters.find(path)
    adapter.write(where, tmp_path, lambda run: analyze_run(run, hn.Settings()), ReadOptions())
    assert path.read_bytes() == before
    assert of(read_eval_log(str(path), header_only=True)) == of(log)


def test_skipped_scores_stay_as_they_are(canned, tmp_path):
    from inspect_ai import Epochs

    log = canned.eval(canned.task(), tmp_path / "in", epochs=Epochs(3, ["mean", "mode"]))[0]
    (target,) = export(Path(log.location), tmp_path / "out")
    by_reducer = {es.reducer: list(es.metrics) for es in read_eval_log(str(target), header_only=True).results.scores}
    assert by_reducer == {"mean": ["accuracy", "stderr", *NAMES], "mode": ["accuracy", "stderr"]}


def test_a_folder_keeps_its_shape(inspect_logs, tmp_path):
    written = export(inspect_logs.folder, tmp_path / "out")
    assert len(written) == 4
    assert {path.relative_to(tmp_path / "out") for path in written} == {
        path.relative_to(inspect_logs.folder)
        for path in (inspect_logs.a, inspect_logs.b, inspect_logs.automatic, inspect_logs.shuffled)
    }
    for path in written:
        assert "noise_se" in of(read_eval_log(str(path), header_only=True))


def one_question(source: Path, target: Path) -> None:
    """A log whose one question has no standard error."""
    log = read_eval_log(str(source))
    log.samples = [sample for sample in log.samples if sample.id == log.samples[0].id]
    log.eval.dataset.sample_ids = [log.samples[0].id]
    log.eval.task_id = "another"
    write_eval_log(log, str(target))


def test_a_log_of_a_folder_with_nothing_to_add_is_copied_as_it_is(inspect_logs, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(inspect_logs.a, folder / "a.eval")
    one_question(inspect_logs.a, folder / "one.eval")
    assert export(folder, tmp_path / "out") == [tmp_path / "out" / "a.eval"]
    assert (tmp_path / "out" / "one.eval").read_bytes() == (folder / "one.eval").read_bytes()
    before = (folder / "one.eval").read_bytes()
    assert export(folder, folder) == [folder / "a.eval"]
    assert (folder / "one.eval").read_bytes() == before


def test_where_there_is_nothing_to_add_to_any_log_nothing_is_written(inspect_logs, tmp_path, capsys):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "eval-set.json").write_text("{}")
    one_question(inspect_logs.a, folder / "one.eval")
    for path in (folder, folder / "one.eval"):
        assert main(["export", str(path), "-o", str(out)]) == 2
        assert "nothing to add" in capsys.readouterr().err
        assert not list(out.rglob("*"))


def test_a_value_in_percent_is_compared_and_has_no_noise_beside_it(inspect_logs, tmp_path):
    log = read_eval_log(str(inspect_logs.a))
    log.results.scores[0].metrics["accuracy"].value *= 100
    for status in ("success", "cancelled"):
        log.status = status
        path = tmp_path / f"{status}.eval"
        write_eval_log(log, str(path))
        (estimate,) = hn.analyze(path).estimates
        assert "mean_mismatch" not in estimate.diagnostics
        with pytest.raises(hn.InputError, match="nothing to add"):
            export(path, tmp_path / "out")


def test_why_there_is_nothing_to_add_is_said(canned, tmp_path):
    from inspect_ai.scorer import accuracy

    from harness_noise.inspect_ext import noise

    def why(path, **choices):
        with pytest.raises(hn.InputError, match="nothing to add") as error:
            hn.export(path, tmp_path / "out", **choices)
        return str(error.value).partition(": nothing to add: ")[2].partition(". No file")[0]

    (log,) = canned.eval(canned.task(), tmp_path / "one", epochs=3)
    assert why(log.location, cluster="task") == "fewer than two clusters: no standard error"
    template = read_eval_log(log.location)
    template.eval.metadata = {"noise_cluster": "{{passage}}!"}
    write_eval_log(template, str(tmp_path / "template.eval"))
    assert why(tmp_path / "template.eval").startswith("the log says its clusters by a template")
    template.status, template.results = "cancelled", None
    write_eval_log(template, str(tmp_path / "cancelled.eval"))
    assert why(tmp_path / "cancelled.eval") == "the run ended before Inspect computed its results"
    (own,) = canned.eval(canned.task(metrics=[accuracy(), noise()]), tmp_path / "own", epochs=3)
    assert why(own.location) == "its task has noise() among its own metrics"
    (log,) = canned.eval(canned.task(canned.samples(1)), tmp_path / "few", epochs=1)
    graded = read_eval_log(log.location)
    graded.samples[0].scores["match"].value = graded.results.scores[0].metrics["accuracy"].value = 0.3
    write_eval_log(graded, str(tmp_path / "graded.eval"))
    assert why(tmp_path / "graded.eval") == "fewer than two questions: no standard error"


def test_a_log_of_a_folder_with_nothing_to_add_is_named(inspect_logs, tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(inspect_logs.a, folder / "a.eval")
    log = read_eval_log(str(inspect_logs.a))
    log.results.scores[0].metrics["accuracy"].value *= 100
    write_eval_log(log, str(folder / "percent.eval"))
    assert main(["export", str(folder), "-o", str(tmp_path / "out")]) == 0
    err = capsys.readouterr().err
    assert "percent.eval: nothing to add" in err
    assert "a.eval: nothing to add" not in err


def test_a_folder_inside_the_logs_is_refused(inspect_logs):
    with pytest.raises(hn.InputError, match="hide the original"):
        export(inspect_logs.folder, inspect_logs.folder / "noise")
    assert not (inspect_logs.folder / "noise").exists()


def test_logs_that_cannot_be_used_are_named(inspect_logs, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    shutil.copy(inspect_logs.a, tmp_path / "in" / "a.eval")
    (tmp_path / "in" / "b.eval").write_bytes(b"not a zip")
    assert main(["export", str(tmp_path / "in"), "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == [str(tmp_path / "out" / "a.eval")]
    assert "b.eval: not an Inspect log" in " ".join(printed.err.split())
    assert f"harness-noise: wrote {tmp_path / 'out' / 'a.eval'}\n" in printed.err
    assert "harness-noise: error bars of " in printed.err


def test_real_logs(shared_data, tmp_path):
    folder = shared_data / "inspect"
    for name in ("mmlu_gpt-4_285.eval", "versions/log_streaming.eval",
                 "versions/2025-05-12T20-28-13-04-00_popularity.json"):  # fmt: skip
        source = folder / name
        (target,) = export(source, tmp_path, cluster="none")
        old, new = read_eval_log(str(source)), read_eval_log(str(target))
        assert body(target) == body(source)
        assert {key: value for key, value in of(new).items() if key not in NAMES} == of(old)
        assert "noise_se" in of(new)
    (target,) = export(folder / "versions" / "log_formats.json", tmp_path, cluster="none")
    old, new = of(read_eval_log(str(folder / "versions" / "log_formats.json"))), of(read_eval_log(str(target)))
    added = {name: value for name, value in new.items() if name not in old}
    assert added.keys() == {"noise_ci_low", "noise_ci_high"}  # one question has no standard error
    assert list(added.values()) == pytest.approx([0, Z2 / (1 + Z2)], abs=1e-12)


def test_one_grade_has_nothing_to_add(inspect_logs, tmp_path):
    def one(log):
        log.samples = log.samples[:1]
        log.samples[0].scores["match"].value = 0.5
        log.eval.config.epochs = log.eval.dataset.samples = 1

    change(inspect_logs.a, tmp_path / "one.json", one)
    with pytest.raises(hn.InputError, match="nothing to add"):
        export(tmp_path / "one.json", tmp_path / "out", cluster="none")
    assert not (tmp_path / "out" / "one.json").exists()


def test_another_file_of_that_name_is_not_replaced(source, inspect_logs, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / source.name
    log = read_eval_log(str(inspect_logs.b))
    write_eval_log(log, str(target))
    before = target.read_bytes()
    assert main(["export", str(source), "-o", str(tmp_path / "out")]) == 2
    assert "another eval" in capsys.readouterr().err
    target.write_bytes(b"something else")
    assert main(["export", str(source), "-o", str(tmp_path / "out")]) == 2
    assert target.read_bytes() == b"something else"
    assert len(before) > 0


def test_a_fault_while_writing_changes_nothing(source, tmp_path, monkeypatch):
    import harness_noise.io.atomic as files

    before = source.read_bytes()

    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_flush", full)
    with pytest.raises(hn.InputError, match="No space left"):
        export(source, source.parent)
    assert source.read_bytes() == before
    assert [path.name for path in source.parent.iterdir()] == [source.name]


def test_scores_of_a_task_authors_own_metric_are_not_doubled(canned, tmp_path):
    from inspect_ai.scorer import match

    from harness_noise.inspect_ext import noise

    log = canned.eval(canned.task(scorer=match(), metrics=[noise()]), tmp_path, epochs=2)[0]
    before = Path(log.location).read_bytes()
    with pytest.raises(hn.InputError, match="no score that is a mean"):
        export(Path(log.location), tmp_path)
    assert Path(log.location).read_bytes() == before


def test_exporting_again_without_clusters_keeps_them_for_what_an_edit_renews(source, tmp_path):
    from inspect_ai.log import edit_score
    from inspect_ai.scorer import ScoreEdit

    from harness_noise.inspect_ext import keep_noise

    (first,) = export(source, tmp_path / "first")
    second = hn.export(first, tmp_path / "second").written[0]
    assert read_eval_log(str(second)).metadata["harness_noise"]["cluster"] == "passage"
    assert keep_noise()
    renewed = []
    for path in (first, second):
        log = read_eval_log(str(path))
        before = of(log)
        wrong = next(sample for sample in log.samples if sample.scores["match"].value == "I")
        edit_score(log, wrong.id, "match", ScoreEdit(value="C"), epoch=wrong.epoch)
        renewed.append(of(log))
        assert renewed[-1]["noise_se"] != before["noise_se"]
    assert renewed[0] == renewed[1]
    third = hn.export(second, tmp_path / "third", cluster="none").written[0]
    assert read_eval_log(str(third)).metadata["harness_noise"]["cluster"] == "none"
