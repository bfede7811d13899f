"""What the columns are called and mean: one source for terminal, HTML, README and docs.

`docs/columns.md` has all of them (`python -m harness_noise.report.words > docs/columns.md`).
"""

from __future__ import annotations

from typing import NamedTuple

from .columns import Column


class Term(NamedTuple):
    label: str
    meaning: str
    """One line, for the legend under a table."""
    json: str = ""
    """Fields of the JSON, with commas."""
    lm_eval: str = ""
    """Keys in lm-eval's results, after the metric's name."""
    inspect: str = ""
    """Metrics in Inspect's log."""
    rank: int = 0
    """Where a terminal is too narrow, the columns of the highest rank are left out first; 0: never."""
    text: bool = False


MEANS: dict[str, Term] = {
    "mean": Term("Mean", "mean score over the questions and their answers", "mean", "_avg"),
    "ci": Term(
        "95 % CI", "confidence interval: where the true mean lies, with 95 % confidence", "ci_low, ci_high", "",
        "noise_ci_low, noise_ci_high",
    ),
    "interval": Term(
        "interval", "how the interval was made, and the degrees of freedom of Student's t", "interval, df", rank=6,
        text=True,
    ),
    "se": Term("SE", "standard error of the mean that was measured", "se", "_avg_stderr", "noise_se"),
    "total": Term(
        "total", "SE with one answer per question, as leaderboards report it", "se_total", "_total_stderr",
        "noise_total", 3,
    ),
    "data": Term(
        "data", "SE left with infinitely many answers: the questions are a sample", "se_data", "_data_stderr",
        "noise_data", 4,
    ),
    "prediction": Term(
        "prediction", "what the model's own randomness adds at one answer per question", "se_prediction",
        "_prediction_stderr", "noise_prediction", 4,
    ),
    "n": Term("n", "questions", "n_questions", rank=2),
    "k": Term("K", "scored answers per question", "repeats_min, repeats_max", rank=2),
    "g": Term("G", "clusters: groups of questions that are right or wrong together", "n_clusters", rank=3),
    "deff": Term("deff", "design effect: how many times clustering inflates the variance", "design_effect", rank=5),
    "missing": Term("missing", "answers without a score", "n_missing", rank=1),
    "if_missing": Term(
        "if wrong … right", "the mean if all missing answers were wrong, and if all were right",
        "mean_if_missing_wrong, mean_if_missing_right", rank=1,
    ),
}  # fmt: skip
"""Of `analyze`."""

DIFFERENCES: dict[str, Term] = {
    "a": Term("A", "mean of the first run, over the questions that are compared", "mean_a"),
    "b": Term("B", "mean of the second run, the baseline", "mean_b"),
    "diff": Term("A − B", "difference of the two means", "diff"),
    "ci": Term("95 % CI", "where the true difference lies, with 95 % confidence", "ci_low, ci_high"),
    "p": Term("p", "how often chance alone gives a difference as large (two-sided)", "p_value", rank=2),
    "p_adj": Term("p adj.", "p adjusted for the rows that are tested together; the verdict follows it", "p_adjusted"),
    "p_sign": Term("p sign", "of the exact sign test", "p_sign", rank=5),
    "test": Term("Test", "what p and the interval come from", "test, interval, df", rank=4, text=True),
    "verdict": Term("Verdict", "by p (adjusted); not separable: neither is shown to be better", "verdict", text=True),
    "se": Term("SE", "standard error of A − B", "se", rank=3),
    "total": Term("total", "SE with one answer per question and run", "se_total", rank=5),
    "data": Term("data", "SE left with infinitely many answers: the questions are a sample", "se_data", rank=6),
    "prediction": Term(
        "prediction", "what the models' own randomness adds at one answer each", "se_prediction", rank=6
    ),
    "unpaired": Term("unpaired", "SE if it were ignored which question is which", "se_unpaired", rank=5),
    "mde": Term("detectable", "smallest true difference found with 80 % power (MDE)", "mde", rank=2),
    "corr": Term("corr.", "correlation of the two runs' question means", "correlation", rank=6),
    "wins": Term("wins A : B : ties", "expected over all pairs of answers", "wins_a, wins_b, ties", rank=6),
    "n": Term("n", "questions that both runs have", "n_questions", rank=4),
    "only": Term("unpaired n", "questions that only A has + that only B has", "n_only_a, n_only_b", rank=4),
    "k": Term("K", "scored answers per question; A : B where they differ", "repeats_a, repeats_b", rank=5),
    "g": Term("G", "clusters: groups of questions that are right or wrong together", "n_clusters", rank=5),
    "missing": Term("missing", "answers without a score", "n_missing", rank=4),
}
"""Of `compare`, and of the pairs of `arena`."""

NOTES = Column("", text=True, hint="letters refer to the notes below")


def mean_column(key: str, level: str = "") -> Column:
    """A column of `analyze`; `level` is the coverage of the interval, where it is that."""
    return _column(MEANS[key], level)


def difference_column(key: str, level: str = "") -> Column:
    """A column of `compare`."""
    return _column(DIFFERENCES[key], level)


def _column(term: Term, level: str) -> Column:
    hint = term.meaning.replace("95 %", level) if level else term.meaning
    return Column(term.label.replace("95 %", level) if level else term.label, term.text, hint, term.rank)


PAGE = """# Columns

What the columns of every table mean, here as on the screen and on HTML pages, and where the same numbers stand in the
JSON, in lm-eval's results and in Inspect's logs. A terminal of 80 columns shows those that matter most; `--details`
shows all. All standard errors are on the metric's own scale.
"""
_PARTS = (
    ("Of one run", "Tables of `analyze`, and of the models of `arena`.", MEANS),
    ("Of two runs", "Tables of `compare`, and of the pairs of `arena`.", DIFFERENCES),
)


def page() -> str:
    """`docs/columns.md`."""
    out = [PAGE]
    for title, lead, terms in _PARTS:
        native = any(term.lm_eval or term.inspect for term in terms.values())
        heads = ["column", "what it is", "JSON", *(["lm-eval", "Inspect"] if native else [])]
        rows = [f"## {title}\n\n{lead}\n", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for term in terms.values():
            cells = [term.label, term.meaning, _code(term.json)]
            if native:
                keys = ", ".join(f"<metric>{key}" for key in term.lm_eval.split(", ") if key)
                cells += [_code(keys), _code(term.inspect)]
            rows.append(f"| {' | '.join(cells)} |")
        out.append("\n".join(rows) + "\n")
    return "\n".join(out)


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", ") if name)


if __name__ == "__main__":
    print(page(), end="")
