"""The paragraph on methods for a paper, and the works that it cites. Only what was used is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._version import __version__
from ...choices import ESTIMATORS, INTERVALS, REFERENCE, TESTS, Register
from ...errors import some_of
from ...report import fmt
from ...report.sentences import sample_words
from ...results.forms import Document, rendered, renderers_of
from ...results.rows import Analysis, Comparison, Difference, Estimate

Rows = Sequence[Estimate | Difference]
Sentence = tuple[str, tuple[str, ...]]
"""A sentence, and the keys of the works behind it, which follow it in brackets."""

WORKS = {
    "Agresti": "Agresti & Caffo (2000), The American Statistician 54(4)",
    "Angelopoulos": "Angelopoulos, Duchi & Zrnic (2023), PPI++, arXiv 2311.01453",
    "Bell": "Bell & McCaffrey (2002), Survey Methodology 28(2)",
    "Benjamini": "Benjamini & Hochberg (1995), J. Royal Statistical Society B 57",
    "Bonett": "Bonett & Price (2012), Statistical Methods in Medical Research 21(5)",
    "Cameron2008": "Cameron, Gelbach & Miller (2008), Review of Economics and Statistics 90(3)",
    "Cameron2011": "Cameron, Gelbach & Miller (2011), J. Business & Economic Statistics 29(2)",
    "Clopper": "Clopper & Pearson (1934), Biometrika 26",
    "Efron": "Efron & Tibshirani (1993), An Introduction to the Bootstrap",
    "Fisher": "Fisher (1935), The Design of Experiments",
    "Good": "Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses",
    "Holm": "Holm (1979), Scandinavian J. of Statistics 6",
    "Hsu": "Hsu (1981), Annals of Statistics 9",
    "Jennison": "Jennison & Turnbull (2000), Group Sequential Methods",
    "Korn": "Korn & Graubard (1998), Survey Methodology 24(2)",
    "MacKinnon": "MacKinnon, Nielsen & Webb (2023), J. Applied Econometrics 38(5)",
    "Miller": "Miller (2024), Adding error bars to evals, arXiv 2411.00640",
    "Mogstad": "Mogstad, Romano, Shaikh & Wilhelm (2024), Review of Economic Studies 91",
    "Pustejovsky": "Pustejovsky & Tipton (2018), J. Business & Economic Statistics 36(4)",
    "Schuirmann": "Schuirmann (1987), J. Pharmacokinetics and Biopharmaceutics 15(6)",
    "Wang": "Wang (2025), Measuring all the noises of LLM evaluations, arXiv 2512.21326",
    "Wilson": "Wilson (1927), J. American Statistical Association 22",
}
"""Key → work, as in docs/sources.md."""

_PAIRINGS = {"paired": "question by question (paired)", "unpaired": "on different questions (unpaired)"}
_STOPPED = {"sequential": ("Jennison",)}
_MISSING = {"zero": "count as 0", "drop": "are left out"}
_BY_ADJUSTMENT = {"holm": ("Holm's method", ("Holm",)), "bh": ("the false discovery rate", ("Benjamini",))}


FORM = "methods"
"""The renderer of a kind of result that has more to say: its sentences and their works, given the adjustment's."""


def text(result: Document) -> str:
    """Return a paper's methods paragraph on a result, and its references, as Markdown."""
    own: list[Sentence] = []
    if FORM in renderers_of(result):
        own = rendered(FORM, result, _BY_ADJUSTMENT.get(_settings(result).get("adjust", "")))
    said = [*_method_sentences(result, rows_of(result)), *own]
    keys = {key: None for _, works in said for key in works}
    said.append((f"All figures were computed with harness-noise {__version__}", ()))
    paragraph = " ".join(f"{words}{_cited(works)}." for words, works in said)
    listed = "".join(f"- {WORKS[key]}\n" for key in sorted(keys))
    return f"{paragraph}\n\n## References\n\n{listed}" if listed else f"{paragraph}\n"


def rows_of(result: Any) -> Rows:
    """Return a result's rows, of an arena its models."""
    return result.rows if isinstance(result, (Analysis, Comparison)) else tuple(result.models)


def _settings(result: Any) -> Mapping[str, Any]:
    return dict(result.settings)


def _works(register: Register[Any], *names: str) -> tuple[str, ...]:
    """Return the citation keys of the works behind these choices (intervals, tests, …), each once."""
    known = [register[name].works.split() for name in names if name in register]
    return tuple(dict.fromkeys(key for keys in known for key in keys))


def _cited(works: Sequence[str]) -> str:
    """Return citations in brackets, to end a paper's sentence: " (Bell & McCaffrey 2002)", "" without works."""
    names = [WORKS[key].partition("),")[0].replace("(", "") for key in works]
    return f" ({'; '.join(names)})" if names else ""


def _method_sentences(result: Document, rows: Rows) -> Iterator[Sentence]:
    """Yield (sentence, citation keys) on how a result's rows were computed."""
    compared = [row for row in rows if isinstance(row, Difference)]
    settings, tested = _settings(result), [row for row in rows if row.se is not None]
    if compared:
        pairings = dict.fromkeys(map(fmt.pairing, compared))
        published = [row for row in compared if fmt.of_published(row)]
        ways = [_PAIRINGS.get(how, how.removeprefix("against ")) for how in pairings if how in _PAIRINGS or published]
        several = len({(row.model_a, row.model_b, row.run_a, row.run_b) for row in compared}) > 1
        who = "We compare a model with" if published else f"We compare {'pairs of' if several else 'two'} models"
        compared_how = " ".join([who, *([some_of(ways, 2)] if ways else [])])
        yield compared_how, ("Miller",) if "paired" in pairings else ()
    else:
        yield "We report the mean score of each model on each benchmark", ()
    yield from _errors(settings.get("se", ""), tested)
    if isinstance(result, (Analysis, Comparison)):  # the table of an arena has no intervals
        yield from _intervals(rows)
    yield from _tests(result, compared)
    yield from _samples(result, rows)
    if any(row.weights == "equal" for row in rows):
        yield "The overall row gives every task the same weight, and a group counts as one task", ()
    if any(row.weights == "size" for row in rows):
        yield "The overall row weights tasks by their numbers of questions", ()
    if any(row.weights == "file" for row in rows):
        yield "The overall row weights tasks as stated", ()
    if any(row.judge is not None for row in rows):
        yield "Human labels of a random subset of the answers correct the judge's scores", ("Angelopoulos",)
    if any(row.n_missing for row in rows):
        yield f"Answers without a score {_MISSING.get(settings.get('missing', ''), 'are treated by their cause')}", ()
    if settings.get("only"):
        yield f"Only questions with {fmt.plain(' and '.join(settings['only']))} are used", ()
    if settings.get("chance") is not None:
        yield "Scores are corrected for guessing, (x − C)/(1 − C)", ()


def _samples(result: Document, rows: Rows) -> Iterator[Sentence]:
    """Yield a sentence on the numbers of questions, clusters and answers. An arena says it itself."""
    asked = [row for row in rows if row.n_questions and not row.is_overall]
    if not asked or not isinstance(result, (Analysis, Comparison)):
        return
    each = list(dict.fromkeys((fmt.plain(fmt.what_of(row)), sample_words(row)) for row in asked))
    said = [words if len(each) == 1 else f"{what} {words}" for what, words in each]
    yield f"The sample: {some_of(said, 12, '; ')}", ()


def _errors(se: str, rows: Rows) -> Iterator[Sentence]:
    """Yield (sentence, citation keys) on the standard errors of these rows."""
    if not rows:
        return
    fixed = [row for row in rows if row.estimand == "these_questions"]
    borrowed = [row for row in rows if isinstance(row, Difference) and row.test == REFERENCE.name]
    made = [row for row in rows if row not in (*fixed, *borrowed)]
    names = [row.estimator if isinstance(row, Estimate) else se for row in made]
    known = [name for name in dict.fromkeys(names) if name in ESTIMATORS or name == "bootstrap"]
    works = tuple(
        dict.fromkeys(key for name in known for key in _works(ESTIMATORS if name in ESTIMATORS else INTERVALS, name))
    )
    clusters = list(dict.fromkeys(fmt.plain(row.cluster) for row in rows if row.cluster))
    how = ", ".join(map(fmt.estimator_name, known))
    words = "± is the standard error"
    words += f", clustered by {some_of(clusters, 4)}" if clusters else ""
    words += " where questions come in clusters" if clusters and not all(row.cluster for row in rows) else ""
    works = (*works, *(["Cameron2011"] if any(" × " in name or "*" in name for name in clusters) else []))
    yield f"{words}{f' ({how})' if how else ''}", (*works, *(["Miller"] if clusters else []))
    counts = [k for row in rows for k in _repeats(row)]
    if max(counts) > 1:
        both = "" if fixed else ", so the error contains the noise of questions and of answers"
        some = any(isinstance(row, Difference) and "missing_repeats" in row.diagnostics for row in rows)
        asked = f"up to {max(counts)}" if some else fmt.span(min(counts), max(counts))
        yield f"Each question has {asked} answers{both}", ("Wang",)
    if fixed:
        yield "The questions are taken as fixed: the error is that of the repeated answers alone", ()


def _repeats(row: Estimate | Difference) -> tuple[int, int]:
    """Return (fewest, most) answers per question of a mean, (1, 1) if copies. Of a difference: A's and B's most."""
    if isinstance(row, Difference):
        return row.repeats_a, row.repeats_a if fmt.of_published(row) else row.repeats_b
    alike = "identical_repeats" in row.diagnostics  # one answer, repeated without a change
    return (1, 1) if alike else (row.repeats_min, row.repeats_max)


def _intervals(rows: Rows) -> Iterator[Sentence]:
    """Yield one sentence, with its citation keys, that lists the methods of the rows' intervals, if there are any."""
    names = list(dict.fromkeys(row.interval for row in rows if row.ci_low is not None))
    if names:
        titles = ", ".join(INTERVALS.title(name) for name in names)
        works = _works(INTERVALS, *names)
        yield f"Confidence intervals have {fmt.level_of(rows)} coverage ({titles})", works


def _tests(result: Document, rows: Sequence[Difference]) -> Iterator[Sentence]:
    """Yield (sentence, citation keys) on tests of differences, the adjustment of several p-values, and the margin."""
    tested = [row for row in rows if row.p_value is not None]
    for name in dict.fromkeys(row.test for row in tested):
        yield (
            _TEST_WORDS.get(name, f"p-values are two-sided ({TESTS.title(name)})"),
            _works(TESTS, name) or _STOPPED.get(name, ()),
        )
    family = [row for row in tested if not row.is_overall]
    settings = _settings(result)
    how = _BY_ADJUSTMENT.get(settings.get("adjust", ""))
    if how and len(family) > 1:
        yield f"They are adjusted over the rows that are tested together by {how[0]}, and verdicts follow them", how[1]
    if settings.get("margin") is not None and rows:
        margin = fmt.scale_of(rows[0]).given(settings["margin"])
        yield f"Two models are equivalent if they are shown to differ by less than {margin}", ("Schuirmann",)


_TEST_WORDS = {
    "t": "p-values are two-sided, from t tests with Satterthwaite's degrees of freedom",
    "sequential": "The run was stopped early, and its figures are corrected for the planned looks",
    "reference": "The standard error is borrowed from other models on the benchmark",
    "fisher": "p-values are two-sided, from Fisher's exact test of two counts",
}
