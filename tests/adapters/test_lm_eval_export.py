"""Writing finished lm-eval runs with their noise: native as they were, whole or absent, once and again."""

import json
import math
import os
from pathlib import Path

import pytest

import harness_noise as hn
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError, NothingToAddError
from harness_noise.io import atomic as files
from harness_noise.results.schema import json_schema
from harness_noise.settings import Settings
from harness_noise_adapters.lm_eval_harness import adapter
from harness_noise_adapters.lm_eval_harness.files import export
from support.notes import noted
from support.strict_json import strict


def write(path, out, **options):
    settings = Settings(cluster=options.get("cluster"), missing=options.get("missing", "drop"), resamples=200)
    return adapter.write(Path(path), Path(out), lambda run: analyze_run(run, settings), ReadOptions(**options))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def results_in(folder: Path) -> Path:
    (found,) = folder.rglob("results_*.json")
    return found


def samples_in(folder: Path, task: str) -> Path:
    (found,) = folder.rglob(f"samples_{task}_2*.jsonl")
    return found


def leaves(value, path=()):
    """Every leaf of a nested value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, (*path, i))
    else:
        yield path, repr(value)


def test_every_file_is_written_under_its_name(lm_eval_runs, tmp_path):
    before = tree(lm_eval_runs / "a")
    written = write(lm_eval_runs / "a", tmp_path / "out")
    assert tree(lm_eval_runs / "a") == before
    assert sorted(str(path.relative_to(tmp_path / "out")) for path in written) == sorted(before)
    assert sorted(tree(tmp_path / "out")) == sorted(before)
    assert written[-1].name.startswith("results_")  # last: a reader joins by it


@pytest.mark.parametrize("part", ["", "sim__model-1", "results", "samples"])
def test_the_models_folder_is_kept_whatever_part_of_the_run_is_named(lm_eval_runs, tmp_path, part):
    whole = lm_eval_runs / "a"
    path = {"results": results_in(whole), "samples": samples_in(whole, "mc")}.get(part, whole / part)
    write(path, tmp_path / "out")
    assert sorted(tree(tmp_path / "out")) == sorted(tree(whole))


def test_native_values_and_bytes_are_untouched(lm_eval_runs, tmp_path):
    for name in ("a", "special"):
        write(lm_eval_runs / name, tmp_path / name, **({"cluster": "template"} if name == "a" else {}))
        native = dict(leaves(json.loads(results_in(lm_eval_runs / name).read_bytes())))
        ours = dict(leaves(json.loads(results_in(tmp_path / name).read_bytes())))
        assert {key: ours[key] for key in native} == native
        for path in (lm_eval_runs / name).rglob("samples_*.jsonl"):
            other = tmp_path / name / path.relative_to(lm_eval_runs / name)
            for before, after in zip(path.read_bytes().splitlines(), other.read_bytes().splitlines(), strict=True):
                assert after.startswith(before[:-1])


def test_a_run_that_scored_nothing_is_not_written(lm_eval_runs, tmp_path):
    with pytest.raises(NothingToAddError, match="nothing to add: the run only predicted"):
        write(lm_eval_runs / "predicted", tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))


def test_one_question_has_no_error_bar_to_add(run_a, tmp_path):
    for path in run_a.rglob("samples_*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows if row["doc_id"] == 0))
    results_in(run_a).unlink()
    with pytest.raises(NothingToAddError, match=r"nothing to add: .*fewer than two questions"):
        write(run_a, tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))


def test_what_is_added(lm_eval_runs, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    write(lm_eval_runs / "a", tmp_path, cluster="template")
    results = strict(results_in(tmp_path).read_bytes())
    jsonschema.validate(results["noise"], json_schema())
    row = results["results"]["gen"]
    (estimate,) = [
        item
        for item in results["noise"]["estimates"]
        if (item["task"], item["scorer"]) == ("gen", "strict") and item["metric"] == "exact_match"
    ]
    assert row["exact_match_avg,strict"] == estimate["mean"]
    assert row["exact_match_avg_stderr,strict"] == estimate["se"] == row["exact_match_avg_clustered_stderr,strict"]
    assert "exact_match_prediction_stderr,strict" not in row  # the scores of single answers are not in the file
    assert estimate["cluster"] == "template"
    assert estimate["run"] == results_in(tmp_path).name  # not where it lies
    assert results["groups"]["outer"]["acc_avg,none"] == results["results"]["outer"]["acc_avg,none"]
    assert results["higher_is_better"]["gen"]["exact_match_avg"] is True
    rows = [strict(line) for line in samples_in(tmp_path, "gen").read_bytes().splitlines()]
    assert {len(row["scores_per_repeat"]["exact_match"]) for row in rows} == {1}
    assert {row["cluster"] for row in rows} == {f"t{i}" for i in range(8)}
    for row in rows:
        assert row["scores_per_repeat"]["exact_match"][0] == row["exact_match"]
    mc = [strict(line) for line in samples_in(tmp_path, "mc").read_bytes().splitlines()]
    assert mc[0]["scores_per_repeat"] == {"acc": [mc[0]["acc"]], "acc_norm": [mc[0]["acc_norm"]]}


@pytest.mark.parametrize("name", ["a", "special", "several", "live"])
def test_twice_is_once(lm_eval_runs, tmp_path, name):
    options = {"cluster": "template"} if name == "a" else {}
    write(lm_eval_runs / name, tmp_path / "one", **options)
    first = tree(tmp_path / "one")
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "one").rglob("*") if path.is_file()}
    write(lm_eval_runs / name, tmp_path / "one", **options)
    write(tmp_path / "one", tmp_path / "two", **options)
    write(tmp_path / "one", tmp_path / "one", **options)  # in place
    write(tmp_path / "one", tmp_path / "one")  # what was asked for before is recorded
    assert tree(tmp_path / "one") == tree(tmp_path / "two") == first
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps  # nothing was even rewritten


def test_the_exported_run_says_the_same_and_keeps_its_clusters(lm_eval_runs, tmp_path):
    write(lm_eval_runs / "a", tmp_path, cluster="template")
    (again,) = adapter.read(tmp_path, ReadOptions())
    (before,) = adapter.read(lm_eval_runs / "a", ReadOptions(cluster="template"))
    settings = Settings(resamples=200)
    pairs = list(zip(analyze_run(again, settings).estimates, analyze_run(before, settings).estimates, strict=True))
    assert pairs
    for one, other in pairs:
        assert (one.mean, one.se, one.se_prediction, one.cluster, one.diagnostics) == (
            other.mean, other.se, other.se_prediction, other.cluster, other.diagnostics,
        )  # fmt: skip


def test_the_samples_of_a_live_run_are_left_as_they_are(lm_eval_runs, tmp_path):
    write(lm_eval_runs / "live", tmp_path)
    paths = list((lm_eval_runs / "live").rglob("samples_*.jsonl"))
    assert paths
    for path in paths:
        assert (tmp_path / path.relative_to(lm_eval_runs / "live")).read_bytes() == path.read_bytes()


def test_another_spec_replaces_the_clusters(lm_eval_runs, tmp_path):
    write(lm_eval_runs / "a", tmp_path / "one", cluster="template")
    write(tmp_path / "one", tmp_path / "two", cluster="meta.source")
    write(lm_eval_runs / "a", tmp_path / "direct", cluster="meta.source")
    assert tree(tmp_path / "two") == tree(tmp_path / "direct")
    write(tmp_path / "one", tmp_path / "none", cluster="none")
    write(lm_eval_runs / "a", tmp_path / "plain", cluster="none")
    assert tree(tmp_path / "none") == tree(tmp_path / "plain")


def test_a_second_spec_keeps_the_first_for_the_tasks_that_it_does_not_name(lm_eval_runs, tmp_path):
    def asked(cluster, before, name):
        write(before, tmp_path / name, **({} if cluster is None else {"cluster": cluster}))
        block = json.loads(results_in(tmp_path / name).read_text())["noise"]
        return block["settings"]["cluster"], {row["task"]: row["cluster"] for row in block["estimates"]}

    first = asked("gen=template", lm_eval_runs / "a", "one")
    assert (first[0], first[1]["gen"]) == ("gen=template", "template")
    spec, of = asked("mc*=template", tmp_path / "one", "two")
    assert spec == "mc*=template,gen=template"
    assert of["gen"] == "template"
    assert tree(tmp_path / "two") == (asked(spec, lm_eval_runs / "a", "both"), tree(tmp_path / "both"))[1]
    assert asked("gen=none", tmp_path / "two", "three")[0] == "gen=none,mc*=template"
    assert asked(None, tmp_path / "two", "four") == (spec, of)
    assert asked("meta.source", tmp_path / "two", "five")[0] == "meta.source"
    assert asked("gen=template", tmp_path / "five", "six")[0] == "gen=template,*=meta.source"


def test_in_place_replaces_the_files_and_nothing_else(run_a, tmp_path):
    write(run_a, tmp_path / "out")
    (run_a / "sim__model-1" / "mine.txt").write_text("kept")
    write(run_a, run_a)
    assert (run_a / "sim__model-1" / "mine.txt").read_text() == "kept"
    inside = tree(run_a)
    del inside["sim__model-1/mine.txt"]
    assert inside == tree(tmp_path / "out")


def test_a_folder_that_would_change_the_input_is_refused(run_a):
    before = tree(run_a)
    with pytest.raises(InputError, match="`in_place=True`"):
        write(run_a / "sim__model-1", run_a)
    assert tree(run_a) == before


def test_unknown_keys_and_nan_survive(run_a, tmp_path):
    path = results_in(run_a)
    results = json.loads(path.read_text())
    results["mine"] = {"deep": [1, None, {"x": 0.1 + 0.2}]}
    results["results"]["mc"]["odd,none"] = float("nan")
    path.write_text(json.dumps(results, indent=2))
    write(run_a, tmp_path / "out")
    after = json.loads(results_in(tmp_path / "out").read_text())
    assert after["mine"] == results["mine"]
    assert math.isnan(after["results"]["mc"]["odd,none"])
    strict(json.dumps(after["noise"]).encode())


def test_half_a_surrogate_pair_survives(run_a, tmp_path):
    path = results_in(run_a)
    path.write_text(path.read_text().replace('"sim/model-1"', '"sim/\\ud83dmodel"'))
    write(run_a, tmp_path / "out")
    assert json.loads(results_in(tmp_path / "out").read_text())["model_name"] == "sim/\ud83dmodel"


def test_missing_scores_are_null_in_the_samples_even_where_they_count_as_zero(run_a, tmp_path):
    path = samples_in(run_a, "mc")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["acc"] = float("nan")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write(run_a, tmp_path / "out", missing="zero")
    first = json.loads(samples_in(tmp_path / "out", "mc").read_text().splitlines()[0])
    assert first["scores_per_repeat"]["acc"] == [None]
    assert math.isnan(first["acc"])
    (run,) = adapter.read(tmp_path / "out", ReadOptions(missing="zero", tasks=("mc",)))
    assert run.scores[0].n_missing == 1


def test_line_ends_and_blank_lines_are_kept(run_a, tmp_path):
    path = samples_in(run_a, "mc")
    text = path.read_text().replace("\n", "\r\n").removesuffix("\r\n")
    path.write_bytes(text.encode())
    write(run_a, tmp_path / "out")
    after = samples_in(tmp_path / "out", "mc").read_bytes()
    assert after.count(b"}\r\n") == 11
    assert after.endswith(b"}")


def test_a_metric_called_cluster_is_left_alone(run_a, tmp_path):
    path = samples_in(run_a, "mc")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [row | {"metrics": [*row["metrics"], "cluster"], "cluster": 0.5} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write(run_a, tmp_path / "out", cluster="gen=none,mc*=template")
    after = [json.loads(line) for line in samples_in(tmp_path / "out", "mc").read_text().splitlines()]
    assert {row["cluster"] for row in after} == {0.5}


def test_results_without_samples_have_nothing_to_add(shared_data, tmp_path):
    with pytest.raises(
        NothingToAddError, match=r"to add: there is no samples file for it: run .*log_samples\. No file"
    ):
        write(shared_data / "lm_eval" / "mmlu_group_0.4.3", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_samples_without_results_get_their_scores(run_a, tmp_path):
    results_in(run_a).unlink()
    written = write(run_a, tmp_path / "out", cluster="template")
    assert {path.name[:8] for path in written} == {"samples_"}
    row = json.loads(samples_in(tmp_path / "out", "mc").read_text().splitlines()[0])
    assert row["cluster"] == "t0"
    assert row["scores_per_repeat"] == {"acc": [row["acc"]], "acc_norm": [row["acc_norm"]]}


def test_a_file_that_grows_is_refused(run_a, tmp_path):
    path = samples_in(run_a, "mc")
    lines = path.read_text()

    def analyze(run):
        path.write_text(lines + lines.splitlines()[0].replace('"doc_hash": "', '"doc_hash": "f') + "\n")
        return analyze_run(run, Settings())

    with pytest.raises(InputError, match="the file grew"):
        adapter.write(run_a, tmp_path / "out", analyze, ReadOptions())
    assert not list((tmp_path / "out").rglob("samples_mc_2*"))
    assert not list((tmp_path / "out").rglob("results_*"))


def test_real_files_of_0_4_3(shared_data, tmp_path):
    write(shared_data / "lm_eval" / "asdiv", tmp_path)
    before = next((shared_data / "lm_eval" / "asdiv").rglob("samples_*.jsonl")).read_bytes().splitlines()
    after = next(tmp_path.rglob("samples_*.jsonl")).read_bytes().splitlines()
    for one, other in zip(before, after, strict=True):
        assert other.startswith(one[:-1])
        row = json.loads(other)
        assert row["scores_per_repeat"] == {"acc": [float(row["acc"])]}
    results = json.loads(results_in(tmp_path).read_bytes())
    assert results["noise"]["estimates"][0]["mean"] == pytest.approx(0.92)


def test_a_fault_leaves_no_temporary_and_no_half_file(run_a, tmp_path, monkeypatch):
    out = tmp_path / "out"
    real = export._augmented
    calls = []

    def fails(*args, **kwargs):
        calls.append(1)
        if len(calls) == 60:  # in the middle of the second file
            raise RuntimeError("fault")
        return real(*args, **kwargs)

    monkeypatch.setattr(export, "_augmented", fails)
    with pytest.raises(RuntimeError, match="fault"):
        write(run_a, out)
    assert not [path for path in out.rglob("*") if path.name.startswith(files.PREFIX)]
    before = tree(out)
    assert 0 < len(before) < len(tree(run_a))
    assert not any("results_" in name for name in before)  # it comes last
    monkeypatch.setattr(export, "_augmented", real)
    write(run_a, out)
    assert sorted(tree(out)) == sorted(tree(run_a))
    assert {name: tree(out)[name] for name in before} == before  # they were whole


def test_a_bad_run_writes_nothing(run_a, tmp_path):
    path = samples_in(run_a, "mc3")
    path.write_text(path.read_text()[:-40])
    with pytest.raises(InputError, match="not JSON"):
        write(run_a, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# lm-eval's own eyes


def table_rows(text: str) -> list[tuple[str, ...]]:
    """(filter, metric, value, standard error) of lm-eval's printed table."""
    cells = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    return [(row[3], row[5], row[7], row[9]) for row in cells[2:] if len(row) > 9]


def test_the_native_table_is_made_from_exported_results(lm_eval_runs, tmp_path):
    utils = pytest.importorskip("lm_eval.utils", reason="lm-eval is not installed")
    write(lm_eval_runs / "a", tmp_path, cluster="template")
    native = utils.make_table(json.loads(results_in(lm_eval_runs / "a").read_text()))
    ours = utils.make_table(json.loads(results_in(tmp_path).read_text()))
    before, after = table_rows(native), table_rows(ours)
    assert [row for row in after if "_avg" not in row[1]] == before
    assert len(before) == 4 + 6 + 2
    assert {row[1] for row in after} - {row[1] for row in before} == {
        "exact_match_avg", "bleu_avg", "acc_avg", "acc_norm_avg",
    }  # fmt: skip
    groups = utils.make_table(json.loads(results_in(tmp_path).read_text()), "groups")
    assert "acc_avg" in groups


def test_the_evaluation_tracker_finds_exported_results(lm_eval_runs, tmp_path):
    utils = pytest.importorskip("lm_eval.utils", reason="lm-eval is not installed")
    write(lm_eval_runs / "several", tmp_path)
    names = [str(path) for path in tmp_path.rglob("*")]
    found = utils.get_results_filenames(names)
    assert sorted(found) == sorted(name for name in names if "results_" in name)
    native = [str(path) for path in (lm_eval_runs / "several").rglob("results_*")]
    assert Path(utils.get_latest_filename(found)).name == Path(utils.get_latest_filename(native)).name
    samples = utils.get_sample_results_filenames(names)
    assert len(samples) == 3


def test_load_dataset_takes_exported_samples(lm_eval_runs, tmp_path):
    """In a process of its own: the library has warnings that are not for us to judge."""
    import subprocess
    import sys

    pytest.importorskip("datasets", reason="datasets is not installed")
    write(lm_eval_runs / "a", tmp_path / "out", cluster="template")
    program = (
        "import sys, datasets\n"
        "for path in sys.argv[1:]:\n"
        "    data = datasets.load_dataset('json', data_files=path, split='train')\n"
        "    print(len(data), len(data[0]['scores_per_repeat'].popitem()[1]), data[0]['cluster'])\n"
    )
    paths = [str(samples_in(tmp_path / "out", task)) for task in ("gen", "mc")]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run([sys.executable, "-c", program, *paths], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["48 1 t0", "12 1 t0"]


def test_nothing_is_added_beside_a_percentage(run_a, tmp_path):
    path = results_in(run_a)
    native = json.loads(path.read_bytes())
    row = native["results"]["mc"]
    row["acc,none"] *= 100
    path.write_text(json.dumps(native))
    write(run_a, tmp_path / "out", cluster="template")
    ours = json.loads(results_in(tmp_path / "out").read_bytes())
    assert {key for key in ours["results"]["mc"] if key.startswith("acc_") and not key.startswith("acc_norm")} == {
        "acc_stderr,none"
    }
    assert "acc_norm_total_stderr,none" in ours["results"]["mc"]
    (estimate,) = (item for item in ours["noise"]["estimates"] if (item["task"], item["metric"]) == ("mc", "acc"))
    assert estimate["mean"] == pytest.approx(row["acc,none"] / 100)
    assert any("percentage" in note for note in noted(ours["noise"]["notes"]))


def test_the_ends_of_the_interval_are_carried_replaced_and_never_over_a_native_key(run_a, tmp_path):
    path = results_in(run_a)
    native = json.loads(path.read_bytes())
    native["results"]["mc"] |= {
        "acc_avg_ci_low,none": 0.25,
        "acc_avg_ci_low_stderr,none": "N/A",
        "acc_norm_stderr,none": "N/A",
    }
    path.write_text(json.dumps(native))
    written = {}
    for level in (0.9, 0.5):  # the second replaces what the first has written
        source = tmp_path / "0.9" if level == 0.5 else run_a
        settings = Settings(level=level)
        adapter.write(source, tmp_path / str(level), lambda run, s=settings: analyze_run(run, s), ReadOptions())
        results = written[level] = strict(results_in(tmp_path / str(level)).read_bytes())
        assert {key: results["results"]["mc"][key] for key in native["results"]["mc"]} == native["results"]["mc"]
        places = [("results", name) for name in results["results"]] + [("groups", name) for name in results["groups"]]
        rows = {(row["task"], f"{row['metric']}", row["scorer"]): row for row in results["noise"]["estimates"]}
        for table, name in places:
            for metric, scorer in (("acc", "none"), ("acc_norm", "none"), ("exact_match", "strict")):
                row, ours = rows.get((name, metric, scorer)), results[table][name]
                for end in ("ci_low", "ci_high"):
                    key = f"{metric}_avg_{end}_stderr,{scorer}"
                    if key not in native["results"]["mc"] or name != "mc":
                        assert ours.get(key) == (row and row[end])
    carriers = {level: written[level]["groups"]["outer"]["acc_avg_ci_low_stderr,none"] for level in written}
    assert carriers[0.9] < carriers[0.5]
    (run,) = adapter.read(tmp_path / "0.5", ReadOptions())
    (before,) = adapter.read(run_a, ReadOptions())
    assert [part.key for part in (*run.scores, *run.skipped)] == [
        part.key for part in (*before.scores, *before.skipped)
    ]


@pytest.mark.parametrize("target", ["", ".", "link"])
def test_the_runs_own_folder_as_output_needs_in_place(run_a, target):
    (run_a / "link").symlink_to(run_a, target_is_directory=True)
    before = tree(run_a)
    with pytest.raises(InputError, match=r"`output` .* is the run's own folder.*`in_place=True`"):
        hn.export(run_a, run_a / target)
    assert tree(run_a) == before
    assert hn.export(run_a, in_place=True).written


def test_columns_that_only_a_table_has_are_refused(run_a):
    with pytest.raises(InputError, match="`columns` score=… is for tables"):
        hn.analyze(run_a, columns={"score": "nosuch"})
