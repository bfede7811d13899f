"""Tasks of every output type for the tiny model."""

from __future__ import annotations

from typing import Any

K, N = 3, 20


def metrics(*names: str) -> list[dict[str, Any]]:
    return [{"metric": name} for name in names]


def generated(**arguments: Any) -> dict[str, Any]:
    return {
        "output_type": "generate_until",
        "doc_to_text": "Q: {{question}}\nA:",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": 4, **arguments},
        "metric_list": metrics("exact_match"),
        "filter_list": [{"name": "strict", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}],
    }


SAMPLED = generated(do_sample=True, temperature=1.0)
GREEDY = generated(do_sample=False)
TASKS = {
    "sampled": SAMPLED,
    "greedy": GREEDY,
    "votes": SAMPLED | {"repeats": 3, "filter_list": [
        {"name": "vote", "filter": [{"function": "take_first_k", "k": 3}, {"function": "remove_whitespace"},
                                    {"function": "majority_vote"}, {"function": "take_first"}]},
    ]},
    "choice": {
        "output_type": "multiple_choice",
        "doc_to_text": "Q: {{question}}\nA:",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "label",
        "metric_list": metrics("acc", "acc_norm", "exact_match", "brier_score"),
    },
    "last": {
        "output_type": "loglikelihood",
        "doc_to_text": "Q: {{question}}\nA:",
        "doc_to_target": " {{answer}}",
        "metric_list": metrics("perplexity", "acc"),
    },
    "rolling": {
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{page}}",
        "metric_list": metrics("word_perplexity", "byte_perplexity", "bits_per_byte"),
    },
}  # fmt: skip


def right(row: dict[str, Any]) -> list[float]:
    """The scores of a question's answers, by other code than lm-eval's."""
    return [float(answer.strip() == row["doc"]["answer"]) for answer in row["resps"][0]]
