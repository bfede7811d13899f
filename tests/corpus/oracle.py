"""What a file of the corpus says, computed once more with the standard library alone: the figures of the manifest.

    python tests/corpus/oracle.py          writes the figures of every cached file into `manifest.jsonl`

Nothing here knows harness_noise. A row is [model, task, metric, scorer, n, mean, SE]; the mean is that of the
questions' means, the standard error their standard deviation (n − 1) over √n. Names that a kind of file does not
have are "". Values that lm-eval reports of tasks and groups whose answers are not there have n = null.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from math import isfinite, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

with contextlib.suppress(ImportError):  # teaches zipfile the packing of today's Inspect, which installs it
    import zipfile_zstd  # noqa: F401

Key = tuple[str, str, str, str]
Answer = tuple[Key, object, float]
"""Row, question and score of one answer."""
GRADES = {
    "C": 1.0,
    "I": 0.0,
    "P": 0.5,
    "N": 0.0,
    "true": 1.0,
    "false": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "passed": 1.0,
    "failed": 0.0,
}


def number(value: object) -> float | None:
    """A score as a number; None for anything else."""
    if isinstance(value, str):
        value = GRADES.get(value, GRADES.get(value.lower(), value))
    try:
        found = float(value)  # type: ignore[arg-type]  # what cannot be one raises
    except (TypeError, ValueError):
        return None
    return found if isfinite(found) else None


def rows(answers: Iterable[Answer]) -> list[list[Any]]:
    """The figures of all answers, sorted."""
    scores: dict[Key, dict[object, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, question, score in answers:
        scores[key][question].append(score)
    found = []
    for key, questions in sorted(scores.items()):
        means = [fmean(repeats) for repeats in questions.values()]
        se = stdev(means) / sqrt(len(means)) if len(means) > 1 else None
        found.append([*key, len(means), fmean(means), se])
    return found


def lm_eval(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Samples files of lm-eval: a metric is a number beside the answer."""
    for path in (path for path in paths if path.suffix == ".jsonl"):
        task = re.sub(r"^(\d{8}_\d{6}_)?samples_|_\d{4}-\d\d-\d\dT.*$", "", path.stem)
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            names = row.get("metrics") or [name for name in row if name != "doc_id" and not name.endswith("_hash")]
            for name in names:
                if not isinstance(row.get(name), str) and (score := number(row.get(name))) is not None:
                    yield ("", task, name, row.get("filter", "none")), row["doc_id"], score


def inspect(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """An Inspect log: a score of each scorer, or of each key of it, per sample and epoch."""
    if zipfile.is_zipfile(paths[0]):
        with zipfile.ZipFile(paths[0]) as log:
            samples = [json.loads(log.read(name)) for name in log.namelist() if name.startswith("samples/")]
    else:
        samples = json.loads(paths[0].read_text(encoding="utf-8")).get("samples") or []
    for sample in samples:
        for scorer, score in (sample.get("scores") or {}).items():
            value = score["value"]
            for key, item in value.items() if isinstance(value, dict) else [("", value)]:
                if (found := number(item)) is not None:
                    yield ("", "", "", f"{scorer}/{key}" if key else scorer), sample["id"], found


def at(value: Any, path: str) -> Any:
    """What stands at a dotted path inside objects."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def table(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """One answer a row, in the named columns."""
    text = paths[0].read_text(encoding="utf-8-sig")
    if paths[0].suffix == ".csv":
        records = list(csv.DictReader(io.StringIO(text)))
    else:
        records = json.loads(text) if paths[0].suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    wide = next((role for role in ("models", "metrics") if role in columns), "")
    for record in records if isinstance(records, list) else at(records, columns["rows"]):
        for name in columns[wide or "score"].split("+" if wide else None):
            score = number(record.get(name, at(record, name)))
            if score is not None:
                model, task = (str(record.get(columns.get(role, ""), "")) for role in ("model", "task"))
                key = (name if wide == "models" else model, task, name if wide == "metrics" else "", "")
                yield key, str(record[columns["question"]]), score


def promptfoo(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """A row for each provider × prompt × test; a test is what its variables, assertions and description are."""
    for row in json.loads(paths[0].read_text(encoding="utf-8"))["results"]["results"]:
        test = row["testCase"]
        question = json.dumps([row["vars"], test.get("assert"), test.get("description")], sort_keys=True)
        if row["failureReason"] != 2:  # an error, whose score is no score
            for metric, value in {"score": row["score"], **row["namedScores"]}.items():
                yield (row["provider"]["label"] or row["provider"]["id"], "", metric, ""), question, value


def deepeval(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """The metrics of each test case, and whether it passed; a metric that failed has no score."""
    data = json.loads(paths[0].read_text(encoding="utf-8"))
    for case in data.get("testRunData", data)["testCases"]:
        question = json.dumps([case["input"], case.get("expectedOutput"), case.get("context")])
        for metric in case["metricsData"] or []:
            if metric.get("score") is not None and not metric.get("error"):
                yield ("", "", metric["name"], ""), question, metric["score"]
        if case.get("success") is not None:
            yield ("", "", "success", ""), question, float(case["success"])


def tau2(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """The reward of each simulation, and its parts."""
    data = json.loads(paths[0].read_text(encoding="utf-8"))
    for row in data["simulations"]:
        if row["termination_reason"] != "infrastructure_error":
            found = row["reward_info"]
            for metric, value in {"reward": found["reward"], **(found.get("reward_breakdown") or {})}.items():
                yield ("", data["info"]["environment_info"]["domain_name"], metric, ""), row["task_id"], value


def mlflow(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """A table that pandas wrote split: the columns METRIC/v1/score."""
    data = json.loads(paths[0].read_text(encoding="utf-8"))
    for cells in data["data"]:
        row = dict(zip(data["columns"], cells, strict=True))
        for name, value in row.items():
            if name.endswith("/score") and value is not None:
                yield ("", "", name.partition("/")[0], ""), json.dumps([row["inputs"], row["ground_truth"]]), value


KINDS = {
    "lm-eval": lm_eval, "inspect": inspect, "table": table, "promptfoo": promptfoo, "deepeval": deepeval,
    "tau2-bench": tau2, "mlflow": mlflow,
}  # fmt: skip


def reported(paths: list[Path], known: set[Key]) -> Iterable[list[Any]]:
    """What lm-eval's results file says beyond the answers."""
    for path in (path for path in paths if path.suffix == ".json"):
        for task, values in json.loads(path.read_text(encoding="utf-8"))["results"].items():
            for name, value in values.items():
                metric, _, scorer = name.partition(",")
                key = ("", task, metric, scorer)
                if scorer and not metric.endswith("_stderr") and key not in known and isinstance(value, (int, float)):
                    yield [*key, None, value, None]


HELM = {f"{name}{ending}" for ending in ("", "@5") for name in (
    "exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "f1_score", "rouge_l",
    "bleu_1", "bleu_4",
)}  # fmt: skip
"""Metrics of HELM, beside which it counts tokens and the like."""


def helm(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """A run of HELM: statistics of each instance."""
    instances, spec = (json.loads(path.read_text(encoding="utf-8")) for path in paths[:2])
    task = re.split(r"[:,]model=", spec["name"])[0]
    for instance in instances:
        for stat in instance["stats"]:
            name = stat["name"]
            if name["name"] in HELM and stat["count"] and "perturbation" not in instance:
                split = "" if name["split"] == "test" else f" ({name['split']})"
                yield (
                    (spec["adapter_spec"]["model"], task + split, name["name"], ""),
                    instance["instance_id"],
                    stat["mean"],
                )


def swe_bench(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Whether each instance is solved: SWE-bench Pro says so alone, reports of instances among other things, and
    a run's report in lists, where a patch that was empty or could not be graded counts as not solved."""
    data = json.loads(paths[0].read_text(encoding="utf-8"))
    if "total_instances" in data:
        solved_ids, *wrong = (
            data.get(name) or () for name in ("resolved_ids", "unresolved_ids", "error_ids", "empty_patch_ids")
        )
        solved_ids = solved_ids or data.get("resolved", ())  # Multi-SWE-bench
        data = dict.fromkeys((each for ids in wrong for each in ids), False)
        data |= dict.fromkeys(solved_ids, True)
    for instance, solved in data.items():
        score = solved["resolved"] if isinstance(solved, dict) else solved
        yield ("", "swe-bench", "resolved", ""), instance, float(score)


def harbor(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Trials of Harbor, each a file; its rewards count unless an exception says that they are not the agent's."""
    for trial in (json.loads(path.read_text(encoding="utf-8")) for path in paths):
        if trial["exception_info"] is None:
            for metric, value in trial["verifier_result"]["rewards"].items():
                yield ("", trial["source"] or "adhoc", metric, ""), trial["task_checksum"], value


def every_eval_ever(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Every Eval Ever: samples, named by the result that they belong to, where they belong to any."""
    about = json.loads(paths[0].read_text())["evaluation_results"] if paths[0].suffix == ".json" else ()
    known = {item.get("evaluation_result_id"): (item["evaluation_name"], item["metric_config"]) for item in about}
    for path in paths[1:] if about else paths:
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            name, config = known.get(row.get("evaluation_result_id"), (row["evaluation_name"], {}))
            key = (row["model_id"], name, config.get("metric_id") or config.get("metric_name") or "score", "")
            yield key, row["sample_id"], float(row["evaluation"]["score"])


def lighteval(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Details of lighteval, which only pyarrow can open: the numbers among a document's metrics."""
    from pyarrow.parquet import read_table

    task = re.fullmatch(r"details_(.+)_[^_]+\.parquet", paths[0].name)[1]  # type: ignore[index]  # all are called so
    for row in read_table(paths[0]).to_pylist():
        for metric, value in row["metric"].items():
            if isinstance(value, (int, float)):
                yield ("", task, metric, ""), row["doc"]["id"], float(value)


RAGAS = {
    "faithfulness", "answer_relevancy", "context_precision", "context_recall", "llm_context_precision_with_reference",
}  # fmt: skip


def ragas(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Metrics in columns, by the words of the user."""
    for row in csv.DictReader(io.StringIO(paths[0].read_text(encoding="utf-8-sig"))):
        for name in RAGAS & row.keys():
            if (score := number(row[name])) is not None:
                yield ("", "", name, ""), row["user_input"], score


def evalscope(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Reviews: every score of a sample."""
    for line in paths[0].read_text(encoding="utf-8").split("\n"):
        if line:
            found = json.loads(line)["sample_score"]
            for metric, value in found["score"]["value"].items():
                yield ("", "", metric, ""), found["group_id"], float(value)


def mathvista(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Problems by their number, right or wrong."""
    for pid, problem in json.loads(paths[0].read_text(encoding="utf-8")).items():
        if (score := number(problem.get("true_false"))) is not None:
            yield ("", "", "accuracy", ""), pid, score


def graded_lists(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """CRUXEval and LiveCodeBench: a list of right and wrong answers to each question."""
    data = json.loads(paths[0].read_text(encoding="utf-8"))
    by_question = data["raw_scored_generations"].items() if isinstance(data, dict) else None
    for question, marks in by_question or ((row["question_id"], row["graded_list"]) for row in data):
        for right in marks:
            yield ("", "", "pass", ""), question, float(right)


def terminal_bench(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Trials of the first terminal-bench; one that nobody graded has no score."""
    for trial in json.loads(paths[0].read_text(encoding="utf-8"))["results"]:
        if trial["is_resolved"] is not None:
            yield ("", "", "resolved", ""), trial["task_id"], float(trial["is_resolved"])


def evalplus(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """The base tests, and both sets of tests."""
    for task, answers in json.loads(paths[0].read_text(encoding="utf-8"))["eval"].items():
        for answer in answers:
            base, plus = answer["base_status"] == "pass", answer["plus_status"] == "pass"
            yield ("", "", "base", ""), task, float(base)
            yield ("", "", "plus", ""), task, float(base and plus)


def tau_bench(paths: list[Path], columns: dict[str, str]) -> Iterable[Answer]:
    """Trials of the first tau-bench; one that ended in an exception has no score."""
    for trial in json.loads(paths[0].read_text(encoding="utf-8")):
        if not trial["info"].get("error"):
            yield ("", "", "reward", ""), trial["task_id"], trial["reward"]


KINDS |= {
    "evalplus": evalplus, "tau-bench": tau_bench,
    "ragas": ragas, "evalscope": evalscope, "mathvista": mathvista, "cruxeval": graded_lists,
    "livecodebench": graded_lists, "terminal-bench": terminal_bench,
}  # fmt: skip
KINDS |= {
    "helm": helm,
    "swe-bench": swe_bench,
    "harbor": harbor,
    "every-eval-ever": every_eval_ever,
    "lighteval": lighteval,
}


def without_samples(paths: list[Path]) -> Iterable[list[Any]]:
    """What Every Eval Ever's results say where no samples are there."""
    alone = len(paths) == 1 and paths[0].suffix == ".json"
    for item in json.loads(paths[0].read_text(encoding="utf-8"))["evaluation_results"] if alone else ():
        metric = item["metric_config"].get("metric_id") or "score"
        yield ["", item["evaluation_name"], metric, "", None, item["score_details"]["score"], None]


def figures(entry: dict[str, Any], paths: list[Path]) -> list[list[Any]]:
    """The rows of an entry whose files lie at `paths`."""
    found = rows(KINDS[entry["kind"]](paths, entry.get("columns", {})))
    if entry["kind"] == "every-eval-ever":
        found += without_samples(paths)
    if entry["kind"] == "lm-eval":
        found += reported(paths, {(row[0], row[1], row[2], row[3]) for row in found})
    return found


def kept(entry: dict[str, Any], found: list[list[Any]]) -> list[list[Any]]:
    """The rows without the names that the entry's `not_shown` lists: numbers that are no metric, left-out metrics."""
    hidden = set(entry.get("not_shown", ()))
    return [row for row in found if not hidden & {row[1], row[2], row[3]}]


def main() -> int:
    """Write the rows of all cached files of which the manifest expects rows."""
    import fetch

    entries = fetch.manifest()
    for entry in entries:
        paths = [fetch.place(entry, file) for file in entry["files"]]
        if entry["kind"] in KINDS and "rows" in entry and all(path.is_file() for path in paths):
            entry["rows"] = kept(entry, figures(entry, paths))
    text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    (fetch.HERE / "manifest.jsonl").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
