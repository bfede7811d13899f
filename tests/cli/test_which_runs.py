"""Which runs and tasks of a folder a command takes: all files of a model, the newest of two, none of another's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.questions import content_hash
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError, NotThereError
from harness_noise.io import registry as adapters
from support.notes import noted

DATE = "2026-01-{:02}T10-00-00.000001"


def results(
    folder: Path,
    tasks: dict[str, Sequence[float]],
    *,
    model: str = "m",
    day: int = 1,
    metric: str = "acc",
    reported: dict[str, float] | None = None,
) -> Path:
    """One results file of lm-eval with its samples; `tasks` maps a task to the scores of its questions."""  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    date = DATE.format(day)
    table = {}
    for task, scores in tasks.items():
        mean = float(np.mean(scores)) if reported is None else reported[task]
        table[task] = {"alias": task, f"{metric},none": mean, f"{metric}_stderr,none": 0.1}
        lines = [
            {
                "doc_id": i, "doc": {"question": f"{task} {i}"}, "target": "x", "arguments": {},
                "resps": [[f"{score}"]], "filtered_resps": [f"{score}"], "filter": "none", "metrics": [metric],
                "doc_hash": content_hash(f"{task} {i}"), "prompt_hash": "a", "target_hash": "b", metric: score,
            }
            for i, score in enumerate(scores)
        ]  # fmt: skip
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"samples_{task}_{date}.jsonl").write_text(text)
    path = folder / f"results_{date}.json"
    configs = {task: {"task": task, "metric_list": [{"metric": metric, "aggregation": "mean"}]} for task in tasks}
    whole = {
        "results": table,
        "configs": configs,
        "higher_is_better": {t: {metric: True} for t in tasks},
        "model_name": model,
    }
    path.write_text(json.dumps(whole))
    return path


def coin(seed: int, n: int = 40, p: float = 0.5) -> list[float]:
    return (np.random.default_rng(seed).random(n) < p).astype(float).tolist()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two models with four tasks each, one file a task; A is far worse on the third."""
    for name in "AB":
        for i in range(4):
            scores = coin(i)
            if name == "A" and i == 2:
                scores = [0.0] * len(scores)
            results(tmp_path / name, {f"t{i}": scores}, model=name, day=i + 1)
    return tmp_path / "A", tmp_path / "B"


@pytest.mark.parametrize("more", [(), ("--models", "A,B")])
def test_every_task_of_two_folders_is_compared(folders, capsys, more):
    assert main(["compare", *map(str, folders), *more, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["comparisons"]
    each = [(f"t{i}", 40) for i in range(4)]
    assert [(row["task"], row["n_questions"]) for row in rows] == [*each, ("overall", 160)]
    assert {(row["model_a"], row["model_b"]) for row in rows} == {("A", "B")}
    assert main(["gate", str(folders[0]), "--against", str(folders[1])]) == 1
    assert "fail: t2 acc: A − B = −47.5 points is shown to be below 0" in " ".join(capsys.readouterr().out.split())


def test_the_files_of_two_models_may_be_named_one_by_one(folders, capsys):
    files = [str(path) for folder in folders for path in sorted(folder.glob("results_*"))]
    assert main(["compare", *files, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["comparisons"]
    assert [row["task"] for row in rows] == [*(f"t{i}" for i in range(4)), "overall"]


def test_one_model_name_in_two_folders_is_two_runs(tmp_path, capsys):
    for name in ("old", "new"):
        for i in range(2):
            results(tmp_path / name, {f"t{i}": coin(i + 10 * (name == "new"))}, day=i + 1)
    assert main(["compare", str(tmp_path / "new"), str(tmp_path / "old"), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["comparisons"]
    assert [row["task"] for row in rows] == ["t0", "t1", "overall"]
    assert {Path(row["run_a"]).name for row in rows} == {"new"}


def test_of_a_task_that_was_run_twice_the_newest_counts_and_the_rest_is_said(tmp_path):
    results(tmp_path / "m", {"t0": [1.0] * 20, "t1": coin(1)}, day=1)
    results(tmp_path / "m", {"t0": coin(2, 20)}, day=2)
    (run,) = adapters.read(tmp_path)
    assert {item.task: float(item.values.mean()) for item in run.scores} == {
        "t0": np.mean(coin(2, 20)), "t1": np.mean(coin(1)),
    }  # fmt: skip
    (note,) = [note for note in noted(run) if "older run" in note]
    assert note.startswith("t0: read from")
    assert DATE.format(1) in note.split(", not from ")[1]


def test_a_newer_run_without_samples_hides_no_older_one_with_them(tmp_path):
    results(tmp_path, {"t0": coin(2, 20), "t1": coin(1)}, day=1)
    results(tmp_path, {"t0": [1.0] * 20}, day=2)
    (tmp_path / f"samples_t0_{DATE.format(2)}.jsonl").unlink()
    (run,) = adapters.read(tmp_path)
    assert {item.task: float(item.values.mean()) for item in run.scores} == {
        "t0": np.mean(coin(2, 20)), "t1": np.mean(coin(1)),
    }  # fmt: skip
    assert run.skipped == ()
    (note,) = [note for note in noted(run) if "without the samples" in note]
    assert note.startswith(f"t0: read from {tmp_path / f'results_{DATE.format(1)}.json'}")
    assert DATE.format(2) in note.split(", not from ")[1]


def test_the_order_of_the_files_does_not_say_which_is_newer(tmp_path):
    for name, day, scores in (("b", 1, [1.0, 0.0]), ("a", 2, [1.0, 1.0])):
        path = results(tmp_path, {"t0": scores}, day=day)
        path.rename(tmp_path / f"results_{name}_{DATE.format(day)}.json")
    (run,) = adapters.read(tmp_path)
    assert run.scores[0].values.mean() == 1.0


def test_two_experiments_in_two_folders_stay_two_runs(tmp_path):
    for day, name in enumerate(("few_shot", "zero_shot"), 1):
        for i in range(2):
            results(tmp_path / name, {f"t{i}": coin(10 * day + i)}, day=day + 2 * i)
    runs = adapters.read(tmp_path)
    assert [Path(run.name).name for run in runs] == ["few_shot", "zero_shot"]
    assert [[item.task for item in run.scores] for run in runs] == [["t0", "t1"]] * 2
    names = [model.model for model in hn.arena(tmp_path).boards[0].models]
    assert names == ["m (few_shot)", "m (zero_shot)"]


def test_a_copy_counts_once(tmp_path):
    for name in ("one", "two"):
        results(tmp_path / name, {"t0": coin(1)})
    (run,) = adapters.read(tmp_path)
    assert [note for note in noted(run) if "its copy" in note]


def test_one_name_for_two_sets_of_questions_does_not_hide_one(tmp_path):
    results(tmp_path, {"t0": coin(1)}, day=1)
    second = results(tmp_path, {"t0": coin(2)}, day=2)
    samples = tmp_path / f"samples_t0_{DATE.format(2)}.jsonl"
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    for line in lines:
        line["doc"]["question"] += ", in other words"
        line["doc_hash"] = content_hash(line["doc"]["question"])
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    runs = adapters.read(tmp_path)
    assert [run.name for run in runs][1:] == [str(second)]
    assert len(runs) == 2


def test_tables_of_one_model_and_task_have_no_newest(tmp_path):
    for seed in (1, 2):
        rows = "".join(f"m,q{i},{x:g}\n" for i, x in enumerate(coin(seed)))
        (tmp_path / f"seed{seed}.csv").write_text("model,question,score\n" + rows)
    runs, errors = adapters.read_what_can_be([tmp_path])
    assert (len(runs), errors) == (2, [])


def test_as_repeats_joins_what_was_run_twice_and_keeps_what_was_not(tmp_path, capsys):
    results(tmp_path / "m", {"t0": coin(1)}, day=1)
    results(tmp_path / "m", {"t0": coin(2), "t1": coin(3)}, day=2)
    assert main(["analyze", str(tmp_path), "--as-repeats", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["estimates"]
    assert [(row["task"], row["repeats_max"]) for row in rows] == [("t0", 2), ("t1", 1), ("overall", 2)]


def test_as_repeats_does_not_show_the_value_of_one_run_for_all(tmp_path, capsys):
    for day in (1, 2):
        path = results(tmp_path / "m", {"t0": coin(day), "t1": coin(day)}, day=day)
        (path.parent / f"samples_t1_{DATE.format(day)}.jsonl").unlink()
    assert main(["analyze", str(tmp_path), "--as-repeats", "--format", "json"]) == 0
    rows = {row["task"]: row for row in json.loads(capsys.readouterr().out)["estimates"]}
    assert rows["t0"]["mean"] == pytest.approx(np.mean([coin(1), coin(2)]))
    assert rows["t1"]["diagnostics"] == ["skipped_metric"]
    assert rows["t1"]["mean"] is None


def test_a_group_is_of_the_tasks_in_all_files(folders, capsys):
    assert main(["analyze", str(folders[0]), "--group", "all=t*", "--format", "json"]) == 0
    rows = {row["task"]: row for row in json.loads(capsys.readouterr().out)["estimates"]}
    assert rows["all"]["n_questions"] == 160
    assert rows["all"]["mean"] == pytest.approx(np.mean([rows[f"t{i}"]["mean"] for i in range(4)]))


def test_arena_and_analyze_take_the_same_runs(folders):
    board = hn.arena(folders[0].parent)
    assert [item.benchmark.task for item in board.boards] == [*(f"t{i}" for i in range(4)), "overall"]
    assert [model.model for model in board.boards[0].models] == ["A", "B"]
    rows = {(item.model, item.task): item.mean for item in hn.analyze(folders[0].parent).estimates}
    for item in board.boards:
        assert {model.model: model.mean for model in item.models} == {
            name: rows[name, item.benchmark.task] for name in "AB"
        }


# --task and --metric


def test_a_run_that_lacks_a_task_is_left_out_of_several(tmp_path, capsys):
    results(tmp_path / "a", {"t0": coin(0)}, model="A")
    results(tmp_path / "b", {"t1": coin(1)}, model="B")
    for given in ([tmp_path], [tmp_path / "a", tmp_path / "b"]):
        assert main(["analyze", *map(str, given), "--task", "t1", "--format", "json"]) == 0
        out, err = capsys.readouterr()
        assert [(row["model"], row["task"]) for row in json.loads(out)["estimates"]] == [("B", "t1")]
        assert "left out, for want of --task t1:" in err
    assert main(["analyze", str(tmp_path), "--task", "t2"]) == 2
    assert "--task t2 is not in any of the 2 runs. There are t0, t1" in capsys.readouterr().err


def test_a_model_that_lacks_a_metric_does_not_take_the_others_of_its_file_with_it(tmp_path, capsys):
    rows = ["question,model,metric,seed,score"]
    for i in range(12):
        rows += [f"q{i},A,em,{k},{(i + k) % 2}" for k in range(2)] + [f"q{i},B,f1,0,{i / 12}"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows) + "\n")
    assert main(["analyze", str(path), "--metric", "em", "--format", "json"]) == 0
    assert [row["model"] for row in json.loads(capsys.readouterr().out)["estimates"]] == ["A"]
    assert main(["factors", str(path), "--metric", "em", "--factor", "seed=seed", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_answers"] == 24
    assert main(["analyze", str(path), "--metric", "acc"]) == 2
    assert "--metric acc is not in any of the 2 runs. There are em, f1" in capsys.readouterr().err


def test_factors_take_every_file(tmp_path, capsys):
    for day in (1, 2):
        results(tmp_path, {"t0": coin(day)}, day=day)
    assert main(["factors", str(tmp_path), "--factor", "run=run", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_answers"] == 80


def test_a_baseline_in_the_folder_is_not_compared_with_itself(tmp_path, capsys):
    for name in ("new", "old"):
        for i in range(2):
            results(tmp_path / name, {f"t{i}": coin(len(name) + 7 * i)}, model=name, day=i + 1)
    assert main(["compare", str(tmp_path), "--against", str(tmp_path / "old"), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["comparisons"]
    tasks = "t0", "t1", "overall"
    assert [(row["model_a"], row["model_b"], row["task"]) for row in rows] == [("new", "old", task) for task in tasks]


@pytest.mark.process
def test_workers_give_the_same_union(folders, capsys):
    outputs = []
    for jobs in ("1", "2"):
        assert main(["arena", *map(str, folders), "--jobs", jobs, "--format", "json"]) == 0
        outputs.append(json.loads(capsys.readouterr().out))
    assert outputs[0] == outputs[1]
    assert [row["task"] for row in outputs[0]["benchmarks"]] == [*(f"t{i}" for i in range(4)), "overall"]


def test_compare_needs_it_in_both(tmp_path, capsys):
    results(tmp_path / "a", {"t0": coin(0)}, model="A")
    results(tmp_path / "b", {"t1": coin(1)}, model="B")
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--task", "t1"]) == 2
    assert "--task t1 is not in this run. There is only t0" in capsys.readouterr().err


def test_runs_of_one_model_have_a_column_that_tells_them_apart(tmp_path, capsys):
    for name in ("old", "new"):
        results(tmp_path / name, {"t0": coin(len(name))})
    assert main(["analyze", str(tmp_path / "new"), str(tmp_path / "old"), "--format", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    lines = [line for line in lines if line.startswith("|")]
    assert "Run" in lines[0]
    assert ["| m | new |" in line or "| m | old |" in line for line in lines[2:4]] == [True, True]


# native values


@pytest.mark.parametrize(
    ("ours", "native", "same"),
    [
        (0.2692307692, 0.2692307692, True),
        (0.2692307692, 0.2692, True),
        (0.2692307692, 26.92, True),
        (0.2692307692, 26.92307692, True),
        (0.1346, 26.92, False),
        (0.1346, 0.2692, False),
        (0.2692307692, 0.2693, False),
        (0.2692307692, 0.26923177, False),
        (26.92307692, 0.2692, True),
        (26.92307692, 26.92, True),
        (0.004, 0.0, False),
        (0.0, 0.0, True),
        (1.0, 1.0, True),
        (0.99, 1.0, False),
    ],
)
def test_a_mean_is_compared_with_the_digits_and_on_the_scale_of_the_native_value(ours, native, same):
    from harness_noise.data.native_values import reproduces

    assert reproduces(ours, native) is same


@pytest.mark.parametrize(("reported", "flagged"), [(0.55, False), (55.0, False), (0.5501, True), (27.5, True)])
def test_only_a_real_mismatch_is_flagged(tmp_path, reported, flagged):
    scores = [1.0] * 11 + [0.0] * 9
    results(tmp_path, {"t": scores}, reported={"t": reported})
    (row,) = hn.analyze(tmp_path).estimates
    assert ("mean_mismatch" in row.diagnostics) is flagged


def test_of_many_runs_of_a_task_the_one_that_counts_is_named_once(tmp_path):
    for day in (1, 2, 3, 4):
        results(tmp_path, {"t": coin(day), "u": coin(day)}, day=day)
    results(tmp_path, {"v": coin(7)}, day=5)
    (run,) = hn.read(tmp_path)
    (note,) = [item for item in noted(run) if "read from" in item]
    kept, *others = (str(tmp_path / f"results_{DATE.format(day)}.json") for day in (4, 1, 2, 3))
    assert note.startswith(f"t, u: read from {kept}, not from {', '.join(others)} (older runs of it)")


@pytest.fixture
def partly_kept(tmp_path):
    """Two runs of 100 questions, with the samples of the first three: what a repository keeps as test data."""
    places = []
    for model, reported, kept in (("new", 0.75, [1.0, 0.0, 0.0]), ("old", 0.77, [1.0, 1.0, 0.0])):
        results(tmp_path / model, {"t": kept, "u": kept}, model=model, reported={"t": reported, "u": sum(kept) / 3})
        file = next((tmp_path / model).rglob("results_*.json"))
        found = json.loads(file.read_text())
        found["n-samples"] = {"t": {"original": 1319, "effective": 100}}
        found.setdefault("config", {})["limit"] = 100
        file.write_text(json.dumps(found))
        places.append(file)
    return places


@pytest.mark.parametrize(
    "command",
    [["analyze"], ["compare"], ["arena"], ["compare", "--format", "sentence"], ["analyze", "--format", "sentence"],
     ["compare", "--format", "latex"], ["arena", "--format", "sentence"], ["plan", "--n", "100", "--from"]],
)  # fmt: skip
def test_scores_that_are_not_those_of_the_native_value_are_told_by_every_command(partly_kept, command, capsys):
    assert main([command[0], "--task", "t", *command[1:], *map(str, partly_kept), "--details"]) == 0
    out = capsys.readouterr()
    shown = " ".join((out.out + out.err).split())
    legend = "the mean of the scores is not the harness"  # LaTeX has the table and what its letters mean
    assert (legend if "latex" in command else "do not have the mean that") in " ".join(out.out.split())
    if command[0] != "plan":
        assert "the samples file has 3 of the 100 questions" in shown
        assert "t acc 75% and 33.33%" in shown


def test_a_gate_does_not_judge_scores_that_are_not_those_of_the_native_value(partly_kept, capsys):
    files = list(map(str, partly_kept))
    gate = ["gate", files[0], "--against", files[1]]
    assert main([*gate, "--task", "t"]) == 2
    assert "cannot judge: t acc: " in capsys.readouterr().out
    assert main([*gate, "--task", "u"]) == 0
    assert main(gate) == 2  # u alone would pass
    said = " ".join(capsys.readouterr().out.split())
    assert "cannot judge: t acc: its scores do not have the mean that the harness reports (mean_mismatch)" in said
    assert {row.task: "mean_mismatch" in row.diagnostics for row in hn.compare(*files).rows} == {
        "t": True, "u": False, "overall": True,
    }  # fmt: skip
    assert {
        board.benchmark.task: bool(board.pairs.flags.get("mean_mismatch", [False])[0])
        for board in hn.arena(files).boards
    } == {"t": True, "u": False, "overall": True}
    assert "mean_mismatch" in hn.compare(*hn.read(files[0]), *hn.read(files[1]), tasks="t").rows[0].diagnostics


def test_no_error_bar_is_exported_beside_a_value_that_the_scores_do_not_reproduce(partly_kept, tmp_path, capsys):
    assert main(["export", str(partly_kept[0]), "-o", str(tmp_path / "out")]) == 0
    written = json.loads(next((tmp_path / "out").rglob("results_*.json")).read_text())
    assert not any("total_stderr" in key for key in written["results"]["t"])
    assert "acc_total_stderr,none" in written["results"]["u"]
    assert written["results"]["t"]["acc,none"] == 0.75
    (row,) = [item for item in written["noise"]["estimates"] if item["task"] == "t"]
    assert "mean_mismatch" in row["diagnostics"]
    assert "do not have the mean that the harness reports" in capsys.readouterr().err


def test_the_placeholder_of_a_run_that_scored_nothing_is_no_mean(tmp_path, capsys):
    results(tmp_path, {"t": [999.0] * 3}, metric="bypass")
    (row,) = hn.analyze(tmp_path).estimates
    assert (row.mean, row.diagnostics) == (None, ("skipped_metric",))
    assert main(["analyze", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "the run only predicted: the answers are there, but nothing was scored" in told
    with pytest.raises(InputError, match=r"nothing was scored\)\.$"):
        hn.compare(tmp_path, tmp_path)


# export


def test_an_export_that_adds_nothing_writes_nothing_and_says_so(tmp_path, capsys):
    results(tmp_path / "in", {"t": [999.0] * 3}, metric="bypass")
    assert main(["export", str(tmp_path / "in"), "-o", str(tmp_path / "out")]) == 2
    assert "nothing to add" in capsys.readouterr().err
    assert not list(tmp_path.glob("out/**/*.json*"))


def test_an_export_leaves_out_what_it_has_nothing_to_add_to(tmp_path, capsys):
    results(tmp_path / "in", {"t": [999.0] * 3}, metric="bypass", day=1)
    results(tmp_path / "in", {"u": coin(1)}, day=2)
    assert main(["export", str(tmp_path / "in"), "-o", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert {DATE.format(2) in line for line in out.splitlines()} == {True}
    assert "nothing to add" in err


# adapters


def test_score_tables_are_asked_last():
    assert adapters.names()[-1] == "table"
    assert adapters.names()[:-1] == sorted(adapters.names()[:-1])


def test_a_folder_of_score_tables_is_its_tables(tmp_path, capsys):
    """In every command, and with what is no table beside them; a harness's own folder is not searched for tables."""
    for name, right in (("b", 3), ("a", 4)):
        rows = "".join(f"q{i},{int(i % 6 < right)}\n" for i in range(30))
        (tmp_path / f"{name}.csv").write_text("question,score\n" + rows)
    (tmp_path / "notes.json").write_text('{"by": "me"}')
    assert [run.model for run in hn.read(tmp_path)] == ["a", "b"]
    assert [item.mean for item in hn.analyze(tmp_path).estimates] == pytest.approx([4 / 6, 3 / 6])
    assert len(hn.arena([tmp_path]).benchmarks) == 1
    assert main(["compare", str(tmp_path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparisons"][0]["diff"] == pytest.approx(1 / 6)
    results(tmp_path / "runs", {"t": [1, 0, 1]})
    (tmp_path / "runs" / "x.csv").write_text("question,score\nq,1\n")
    assert [run.harness for run in hn.read(tmp_path / "runs")] == ["lm-eval"]


def test_a_folder_without_runs_names_all_that_were_asked(tmp_path):
    with pytest.raises(InputError) as refused:
        adapters.read(tmp_path)
    assert all(name in str(refused.value) for name in adapters.names())


def test_an_error_for_several_runs_can_be_pickled():
    import pickle

    error = NotThereError(["a", "b"], "--task", ["x"], ["y"], "folder")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301


def test_apart_gives_every_run_by_itself(tmp_path):
    for day in (1, 2):
        results(tmp_path, {"t0": coin(day)}, day=day)
    assert len(adapters.read(tmp_path)) == 1
    assert len(adapters.read(tmp_path, ReadOptions(apart=True))) == 2


@pytest.mark.parametrize("command", ["analyze", "compare", "arena"])
def test_clusters_of_a_task_that_no_run_has_are_refused(folders, capsys, command):
    paths = [str(folder) for folder in folders]
    assert main([command, *paths, "--cluster", "t1=question", "--cluster", "t9=question"]) == 2
    assert "--cluster t9=question: there is no task t9. The tasks are t0, t1, t2, t3 (" in capsys.readouterr().err
    results(folders[0], {"t9": coin(9)}, model="A", day=9)  # one of the runs has it
    assert main([command, *paths, "--cluster", "t1=question", "--cluster", "t9=question"]) == 0


def test_so_they_are_in_python(folders):
    with pytest.raises(InputError, match="there is no task t9"):
        hn.analyze(folders[0], cluster="t9=question")


def test_as_repeats_says_that_it_joined_nothing(tmp_path, capsys):
    for model in "ab":
        (tmp_path / f"{model}.csv").write_text("question,score\n" + "".join(f"q{i},{i % 3}\n" for i in range(9)))
    paths = [str(tmp_path / f"{model}.csv") for model in "ab"]
    said = "--as-repeats joined nothing: every run is of another model (a, b)"
    assert main(["analyze", *paths, "--as-repeats"]) == 0
    assert said in capsys.readouterr().err
    (tmp_path / "b.csv").rename(tmp_path / "a_run2.csv")
    (tmp_path / "a.csv").rename(tmp_path / "a_run1.csv")
    assert main(["analyze", *map(str, tmp_path.iterdir()), "--as-repeats"]) == 0
    assert said[:20] not in capsys.readouterr().err
