"""Simulated stochastic models, registered with lm-eval, and local tasks to ask them."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

_CACHE = tempfile.mkdtemp(prefix="harness-noise-datasets-")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_CACHE"] = _CACHE

# the datasets library reads its environment when it is imported
import lm_eval.models  # noqa: E402 - lm-eval's own models are registered only then
import lm_eval.utils  # noqa: E402
import yaml  # noqa: E402
from lm_eval.api.model import LM  # noqa: E402
from lm_eval.api.registry import register_model  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

# lm-eval compiles a template anew for every question and every field, which took two thirds of the time of a toy run
if hasattr(lm_eval.utils, "env"):
    lm_eval.utils.env.from_string = cache(lm_eval.utils.env.from_string)


def uniform(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts only."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


@register_model("sim-hash")
class HashModel(LM):
    """Answers `right-or-wrong` by a hash of seed, prompt and how often it was asked: reproducible."""

    def __init__(self, seed: int = 0, share: float = 0.6, same: bool = False, **_: Any) -> None:
        super().__init__()
        self.seed, self.share, self.same = int(seed), float(share), bool(same)
        self.asked: Counter[str] = Counter()
        self.calls: list[int] = []
        self.fail_after: int | None = None

    @classmethod
    def create_from_arg_string(cls, arg_string: str, additional_config: dict | None = None) -> HashModel:
        from lm_eval.utils import simple_parse_args_string

        return cls(**simple_parse_args_string(arg_string))

    def draw(self, prompt: str) -> float:
        n = self.asked[prompt]
        self.asked[prompt] += 1
        return uniform(self.seed, prompt, 0 if self.same else n)

    def answer(self, prompt: str) -> str:
        """The model knows the answer of a toy question: the last two numbers of it, added."""
        numbers = [int(word) for word in prompt.replace("?", " ").replace(".", " ").split() if word.isdigit()]
        truth = sum(numbers[-2:])
        easy = uniform("difficulty", prompt)
        u = self.draw(prompt)
        if u < self.share * (0.5 + easy):
            return f" {truth}"
        return f" about {truth}" if u > 0.97 else f" {truth + 1}"

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        self.calls.append(len(requests))
        if self.fail_after is not None and len(self.calls) > self.fail_after:
            raise ConnectionError("the server is gone")
        return [self.answer(request.args[0]) for request in requests]

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return [(-10 * uniform(self.seed, *request.args), False) for request in requests]

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        return [-10 * uniform(self.seed, *request.args) for request in requests]


@register_model("sim-state")
class StatefulModel(HashModel):
    """Draws from the global random state, as a local model with sampling does."""

    def draw(self, prompt: str) -> float:
        return random.random()

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return [(-10 * random.random(), False) for _ in requests]


def docs(n: int, per_template: int = 3, start: int = 0) -> list[dict[str, Any]]:
    """n sums, numbered from `start`; `template` groups them."""
    out = []
    for i in range(n):
        a, b = 3 + i // per_template, 2 + 7 * (i % per_template)
        out.append(
            {
                "template": f"t{i // per_template}",
                "question": f"Item {start + i} x: add {a} and {b} ?",
                "answer": str(a + b),
                "choices": [str(a + b + d) for d in (-1, 0, 2)],
                "label": 1,
                "meta": {"source": i // per_template},
            }
        )
    return out


GENERATE = {
    "output_type": "generate_until",
    "doc_to_text": "Q: {{question}}\nA:",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n"], "do_sample": True, "temperature": 0.7, "max_gen_toks": 16},
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    "filter_list": [
        {
            "name": "strict",
            "filter": [{"function": "regex", "regex_pattern": "^ ?(-?[0-9]+)$"}, {"function": "take_first"}],
        },
        {
            "name": "flexible",
            "filter": [
                {"function": "regex", "regex_pattern": "(-?[0-9]+)", "group_select": -1},
                {"function": "take_first"},
            ],
        },
    ],
}
CHOICE = {
    "output_type": "multiple_choice",
    "doc_to_text": "Q: {{question}}\nA:",
    "doc_to_choice": "{{choices}}",
    "doc_to_target": "label",
    "metric_list": [
        {"metric": "acc", "aggregation": "mean", "higher_is_better": True},
        {"metric": "acc_norm", "aggregation": "mean", "higher_is_better": True},
    ],
}


def write_task(
    folder: Path, name: str, rows: Sequence[dict[str, Any]], base: dict[str, Any] = GENERATE, **more: Any
) -> None:
    """A YAML task with its data beside it, both under `folder`."""
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "metadata": {"version": 1.0},
        **base,
        **more,
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))


def write_group(folder: Path, name: str, tasks: Sequence[Any], metrics: Sequence[dict[str, Any]]) -> None:
    """A group YAML."""
    config = {"group": name, "task": list(tasks), "aggregate_metric_list": list(metrics)}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))


def simple_evaluate(folder: Path, tasks: Sequence[Any], model: Any = None, **more: Any) -> dict[str, Any]:
    """`lm_eval.simple_evaluate` on the tasks of a folder; 50 bootstrap iterations."""
    options: dict[str, Any] = {"bootstrap_iters": 50, **more}
    return lm_eval.simple_evaluate(
        model=HashModel() if model is None else model,
        tasks=list(tasks),
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        **options,
    )
