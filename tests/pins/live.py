"""Real runs of both harnesses with the flag on, on answers that are a function of the question.

`python live.py FOLDER` writes FOLDER/lm-eval/{one,two,plain,bare}, FOLDER/inspect and three folders beside it.
It is a process of its own, because harnesses keep what they have loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

K = 3


def uniform(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts only."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def harness_noise(*arguments: str) -> int:
    """The command line of this package, wherever it lives."""
    (script,) = entry_points(group="console_scripts", name="harness-noise")
    code: int = script.load()(list(arguments))
    return code


def documents(n: int, start: int = 0) -> list[dict[str, Any]]:
    out = []
    for i in range(n):
        a, b = 3 + i // 3, 2 + 7 * (i % 3)
        out.append(
            {
                "template": f"t{i // 3}",
                "language": f"l{i % 3}",
                "question": f"Item {start + i} x: add {a} and {b} ?",
                "answer": str(a + b),
                "choices": [str(a + b + d) for d in (-1, 0, 2)],
                "label": 1,
                "two": ["no", "yes"],
                "truth": int(uniform("truth", start + i) < 0.5),
                "page": f"The {i} small foxes add {a} and {b} to their {start} dens.",
            }
        )
    return out


def _listed(*names: str) -> list[dict[str, Any]]:
    """Metrics with the aggregation that lm-eval gives them."""
    return [{"metric": name} for name in names]


def _regex(name: str, pattern: str, which: int = 0) -> dict[str, Any]:
    find = {"function": "regex", "regex_pattern": pattern, "group_select": which}
    return {"name": name, "filter": [find, {"function": "take_first"}]}


_ASKED = {
    "output_type": "generate_until",
    "doc_to_text": "Q: {{question}}\nA:",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n"], "do_sample": True, "temperature": 0.7, "max_gen_toks": 16},
}
_CHOSEN = {"output_type": "multiple_choice", "doc_to_text": "Q: {{question}}\nA:"}
_SUM = {**_CHOSEN, "doc_to_choice": "{{choices}}", "doc_to_target": "label"}
_FILTERS = [_regex("strict", "^ ?(-?[0-9]+)$"), _regex("flexible", "(-?[0-9]+)", -1)]
TASKS: dict[str, dict[str, Any]] = {
    "gen": {**_ASKED, "metric_list": _listed("exact_match"), "filter_list": _FILTERS},
    "gen_large": {**_ASKED, "metric_list": _listed("exact_match"), "filter_list": _FILTERS},
    "choice": {**_SUM, "metric_list": _listed("acc", "acc_norm")},
    "binary": {
        **_CHOSEN,
        "doc_to_choice": "{{two}}",
        "doc_to_target": "truth",
        "metric_list": _listed("acc", "f1", "mcc"),
    },
    "words": {**_ASKED, "metric_list": _listed("bleu", "chrf")},
    "page": {
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{page}}",
        "metric_list": _listed("word_perplexity", "bits_per_byte"),
    },
}
GROUPS = {
    "inner": (["gen", "gen_large"], [{"metric": "exact_match", "weight_by_size": True, "filter_list": ["strict"]}]),
    "outer": (["inner", "choice"], [{"metric": "acc", "weight_by_size": False}]),
}
_SIZES = {"gen": 12, "gen_large": 24, "choice": 18, "binary": 30, "words": 12, "page": 10}


def write_tasks(folder: Path) -> None:
    """The YAML files and their data."""
    folder.mkdir(parents=True)
    for at, (name, config) in enumerate(TASKS.items()):
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in documents(_SIZES[name], 100 * at)))
        files = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}}, "test_split": "test"}
        whole = {"task": name, **files, "metadata": {"version": 1.0}, **config}
        (folder / f"{name}.yaml").write_text(json.dumps(whole))  # JSON is YAML
    for name, (tasks, metrics) in GROUPS.items():
        config = {"group": name, "task": tasks, "aggregate_metric_list": metrics}
        (folder / f"{name}.yaml").write_text(json.dumps(config))


def register() -> None:
    """Make `--model pinned` known to lm-eval."""
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    @register_model("pinned")
    class Pinned(LM):  # type: ignore[misc]
        """Answers by a hash of its seed, the prompt and how often it was asked."""

        def __init__(self, seed: int = 0, share: float = 0.6, **_: Any) -> None:
            super().__init__()
            self.seed, self.share = int(seed), float(share)
            self.asked: Counter[str] = Counter()

        def answer(self, prompt: str) -> str:
            truth = sum([int(word) for word in prompt.split() if word.isdigit()][-2:])
            u = uniform(self.seed, prompt, self.asked[prompt])
            self.asked[prompt] += 1
            if u < self.share * (0.5 + uniform("ease", prompt)):
                return f" {truth}"
            return f" about {truth}" if u > 0.97 else f" {truth + 1}"

        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            return [self.answer(request.args[0]) for request in requests]

        def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
            return [(-10 * uniform(self.seed, *request.args), False) for request in requests]

        def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
            return [-60 - 20 * uniform(self.seed, *request.args) for request in requests]


def lm_eval(folder: Path) -> None:
    """Four runs of lm-eval: two models with all, one without the flag, one without rows."""
    import lm_eval.api.metrics
    import lm_eval.models

    register()
    # lm-eval's own error of bleu and F1 takes 100,000 resamples and is none of our numbers
    lm_eval.api.metrics.bootstrap_stderr = lambda *_, **__: 0.125
    tasks = folder.parent / "tasks"
    write_tasks(tasks)
    noise = ("--noise", "--noise_repeats", str(K))
    whole = (*noise, "--noise_cluster", "template", "--noise_group", "asked=gen*")
    crossed = (*noise, "--noise_cluster", "gen=template*language", "--noise_no_rows", "--noise_level", "0.9")
    every = "outer,binary,words,page"
    runs: dict[str, tuple[int, str, tuple[str, ...]]] = {
        "one": (1, every, whole),
        "two": (2, every, whole),
        "plain": (1, every, ()),
        "bare": (1, "gen", crossed),
    }
    for name, (seed, names, more) in runs.items():
        print(f"== lm-eval {name}")
        model = f"model=pinned-{seed},seed={seed},share={0.7 - seed / 10}"
        code = harness_noise(
            "lm-eval", "run", "--model", "pinned", "--model_args", model,
            "--tasks", names, "--include_path", str(tasks), "--output_path", str(folder / name), "--log_samples", *more,
        )  # fmt: skip
        if code:
            sys.exit(f"lm-eval {name} ended with {code}")


def _inspect_parts() -> tuple[Any, list[Any]]:
    """A solver and four scorers whose answers and scores are a function of question and epoch."""
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score, Target, accuracy, grouped, match, mean, scorer, stderr
    from inspect_ai.solver import Generate, TaskState, solver

    @solver
    def pinned():  # type: ignore[no-untyped-def]
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            key = (state.model.name, state.sample_id)
            right = uniform(*key, state.epoch) < 0.3 + 0.6 * uniform("ease", state.sample_id)
            state.output = ModelOutput.from_content(str(state.model), "yes" if right else "no")
            return state

        return solve

    @scorer(metrics=[mean(), stderr(cluster="passage")])
    def length():  # type: ignore[no-untyped-def]
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value=round(10 * uniform("length", state.sample_id, state.epoch), 3))

        return score

    @scorer(metrics={"clear": [mean(), stderr()], "brief": [mean()]})
    def judged():  # type: ignore[no-untyped-def]
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value={name: uniform(name, state.sample_id, state.epoch) for name in ("clear", "brief")})

        return score

    @scorer(metrics=[grouped(accuracy(), "passage"), stderr()])
    def by_passage():  # type: ignore[no-untyped-def]
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value=int(uniform("passage", state.sample_id, state.epoch) < 0.5))

        return score

    return pinned(), [match(), length(), judged(), by_passage()]


def inspect(folder: Path) -> None:
    """Inspect with several scorers, in both formats of a log; once without the flag."""
    import inspect_ai
    from inspect_ai.dataset import MemoryDataset, Sample

    answers, scorers = _inspect_parts()
    samples = [
        Sample(id=f"q{i}", input=f"Question {i}? Say yes or no.", target="yes", metadata={"passage": f"p{i // 3}"})
        for i in range(12)
    ]
    flag = {"noise": True, "noise_cluster": "passage"}
    runs: dict[str, tuple[str, str, int, dict[str, Any]]] = {
        "inspect": ("one", "eval", K, flag),
        "inspect-json": ("two", "json", K, flag | {"noise_level": 0.9, "noise_estimator": "cr3"}),
        "inspect-single": ("one", "json", 1, {"noise": True}),
        "inspect-plain": ("one", "eval", K, {}),
    }
    for name, (model, form, epochs, metadata) in runs.items():
        print(f"== inspect {name}")
        models = [f"mockllm/{model}"] if name != "inspect" else ["mockllm/one", "mockllm/two"]
        inspect_ai.eval(
            inspect_ai.Task(name="pinned", dataset=MemoryDataset(samples), solver=answers, scorer=scorers),
            model=models,
            epochs=epochs,
            metadata=metadata,
            log_dir=str(folder / name),
            log_format=form,
            display="none",
            max_samples=1,
            max_tasks=1,
        )


def main(folder: Path) -> None:
    os.environ.update(
        HF_HUB_OFFLINE="1", HF_DATASETS_CACHE=str(folder / "cache"), TQDM_DISABLE="1", INSPECT_LOG_LEVEL="warning"
    )
    lm_eval(folder / "lm-eval")
    inspect(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
