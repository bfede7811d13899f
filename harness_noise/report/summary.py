"""Display of a result: sections of columns with headings, with digits that follow the standard error.

Every renderer draws these sections and nothing else. JSON and CSV have the complete numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from ..choices import T_TEST
from ..data import notes as said_of
from ..errors import counted as counted_of
from ..errors import some_of
from ..extras import display_of
from ..io.paths import telling_parts
from ..results.forms import Document, rendered
from ..results.parts import KEYWORD
from ..results.rows import (
    LARGEST,
    MISSING,
    SCORED_DIFFERENTLY,
    UNADJUSTED,
    UNCLUSTERED,
    WEIGHTS,
    Analysis,
    Change,
    Comparison,
    Difference,
    Estimate,
    Flip,
)
from . import fmt
from .columns import (
    DIFFERENCES,
    MEANS,
    TASK,
    Column,
    Marks,
    Section,
    Summary,
    TextColumn,
    difference_columns,
    mean_columns,
    section,
    verdict_tone,
)
from .parts import drawn, full_section, two_parts_words
from .sentences import (
    FEW,
    asked_for,
    bounds_if_missing,
    closing_line,
    first_metrics,
    gap_words,
    overall_first,
    sample_words,
    sentence,
    shown_rows,
    verdict_lines,
    verdicts_if_missing,
)

NAME = 40
"""The most letters of a model's name next to its mean."""
Result: TypeAlias = Document


def summarise(table: Result, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return a result as a `Summary` (tables and sentences), which all renderers show. `brief`: main rows only.

    Args:
        table: the result.
        brief: only the rows that differ, where there are many, and few sentences.
        wide: show questions and answers whole.
    """
    shown: Summary = rendered("summary", table, brief=brief, wide=wide)
    only = only_words(table)
    return replace(shown, lead=(*only, *shown.lead), tones=(*("" for _ in only), *shown.tones)) if only else shown


def only_words(table: object) -> list[str]:
    """Return [sentence on which questions the result is restricted to], [] if it has all questions."""
    only = getattr(table, "settings", {}).get("only")
    return [f"Only the questions with {fmt.plain(' and '.join(only))}."] if only else []


NO_SAMPLES = (
    "There are no error bars, because the answers to the single questions are not there. What to do: keep them with "
    "--log_samples (lm-eval) and run again. Or compare two such numbers by the noise of their benchmark, as in "
    "harness-noise compare 0.71 0.68 --profile gpqa_diamond."
)
NOT_SCORED = (
    "There are no means and no error bars, because the run only predicted: the answers are there, but nothing was "
    "scored. What to do: run again without --predict_only (with lm-eval's --use_cache, greedy answers are not asked "
    "for again), or score the answers yourself and read them as a table."
)

NO_NUMBERS = (
    "There are no error bars, because no metric here has one number for each question. The notes say why. What to do: "
    "choose a metric that has, or score the answers yourself and read them as a table."
)


def of_analysis(table: Analysis, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return the means of runs as a `Summary` of tables and sentences."""
    rows: Sequence[Estimate] = asked_for(table.estimates) if brief else table.estimates
    marks, level = Marks(), fmt.level_of(table.estimates)
    several = len({(row.model, row.run) for row in rows}) > 1
    runs = _run_names(rows)
    keys = "mean ci interval se total data prediction n k g deff estimator missing if_missing judge bias labelled gain"
    names = [
        TextColumn("Model", lambda row: fmt.plain(row.model) if several else "", optional=True),
        TextColumn(
            "Run",
            lambda row: fmt.plain(runs.get((row.model, row.run), "")),
            "what tells the runs of one model apart",
            optional=True,
        ),
        *TASK,
    ]
    alone = brief and not wide and len(rows) == 1 and rows[0].mean is not None
    if alone:
        first_table, last = _first_block(rows[0]), (_codes_of(rows[0]), MORE)
    else:
        first_table, last = section("", rows, [*names, *mean_columns(keys, level), marks.column()]), ("", "")
    first = first_metrics(rows)
    written: list[str] = []
    if not brief and len(first) <= FEW:
        written = [*(fmt.Sentence(sentence(row)) for row in first), *filter(None, map(gap_words, first))]
    by_slice = slice_sections(table, marks)
    stops = [_of_stops().stop_section(table.sequential, "When the run stopped")] if table.sequential else []
    beside = [*by_slice, *stops, *([full_section(table.full_benchmark, marks)] if table.full_benchmark else [])]
    sentences = [*drawn(table), *written, *fmt.weights_line(rows), *_on_slices(table), *fmt.estimand_line(rows)]
    lead = [_of_stops().stopped(row) for row in table.sequential] + [
        closing_line(row, who=" ".join([row.model, runs.get((row.model, row.run), "")]).strip() if several else "")
        for row in overall_first([row for row in rows if row.is_overall or len(rows) <= FEW][:FEW])
    ]
    if brief and rows and all("skipped_metric" in row.diagnostics for row in rows):
        codes = {note.code for note in table.notes}
        why = NO_NUMBERS if said_of.NO_ERROR_BAR in codes and said_of.NO_SAMPLES not in codes else NO_SAMPLES
        why = NOT_SCORED if said_of.NOT_SCORED in codes else why
        return Summary(tuple(beside), (), (why,), tuple(lead))  # instead of a table of dashes
    shown = Summary((first_table, *beside), marks.legend(), tuple(sentences), tuple(lead))
    return replace(shown, codes=last[0], more=last[1])


MORE = "More: `details=True`, `legend=True`."
"""Advice on how to see what the first screen leaves out."""


def _codes_of(row: Estimate | Difference) -> str:
    """Return a line that lists the diagnostic codes of a row that is shown alone. "" if it has none.

    Beside `few_flips` stands which limit it moved, since an interval that is not symmetric is taken for an error.
    """
    codes = list(fmt.shown_codes(row))
    if isinstance(row, Difference) and (moved := fmt.moved_limit(row)):
        codes[codes.index("few_flips")] += f" ({fmt.moved_words(moved)})"
    return f"Diagnostics: {', '.join(codes)}." if codes else ""


def _first_block(row: Estimate) -> Section:
    """Return the small table that is shown first for a single mean."""
    figures = (
        Column("mean", lambda row: fmt.mean_of(row, row.mean, unit=True), MEANS["mean"].hint),
        *mean_columns("ci", fmt.level_of([row])),
        Column("standard error", lambda row: fmt.amount(row, row.se or None), MEANS["se"].hint, optional=True),
        *mean_columns("missing if_missing judge", ""),
        *(replace(column, cell=lambda row: fmt.bias(row, unit=True)) for column in mean_columns("bias", "")),
        *mean_columns("labelled", ""),
    )
    title = fmt.plain(f"{fmt.what_of(row)}: {sample_words(row)}".removeprefix(": "))
    return replace(section(title, [row], figures), stacked=True, units="")


def _run_names(rows: Sequence[Estimate]) -> dict[tuple[str, str], str]:
    """Return {(model, run): short name} for models with several runs, from what differs in the paths."""
    models: dict[str, dict[str, None]] = {}
    for row in rows:
        models.setdefault(row.model, {})[row.run] = None
    return {
        (model, run): part
        for model, runs in models.items()
        if len(runs) > 1
        for run, part in zip(runs, telling_parts(list(runs)), strict=True)
    }


def of_comparison(table: Comparison, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return the differences of two runs as a `Summary` of tables and sentences."""
    every, marks = table.comparisons, Marks()
    asked = asked_for(every)
    if brief and len(asked) == 1 and not wide:
        return _first_screen(table, asked[0])
    rows = shown_rows(table) if brief else list(every)
    several = len(set(map(fmt.pair_of, every))) > 1
    names = [*([TextColumn("A − B", fmt.models_of)] if several else []), *TASK]
    adjusted = len(every) > 1 and table.settings.get("adjust") != "none"
    keys = f"a b diff ci p {'p_adj ' if adjusted else ''}test verdict"
    named = every and not several and fmt.names_of(every[0]) != ("A", "B")
    title = fmt.plain("A = {}, B = {}".format(*fmt.names_of(every[0]))) if named else ""
    left = len(every) - len(rows)
    every_row = "`details=True` shows all, `format='csv'` has them."
    more = f"{counted_of(left, 'more row')}: {every_row}" if left else ""
    results = [*names, *difference_columns(keys, fmt.level_of(every)), marks.column()] if rows or not left else []
    sections = [section(title, rows, results, more=more)]
    noise = difference_columns(
        "se total data prediction unpaired mde corr wins n only k g deff missing judge bias labelled gain"
    )
    if any(row.test == T_TEST.name and row.estimand != "these_questions" for row in every):
        estimator = fmt.estimator_name(str(table.settings.get("se", "")))
        noise.append(TextColumn("estimator", lambda row: estimator, "variance estimator behind SE", 6, optional=True))
    sections.append(section("Noise of A − B (standard errors)", rows, [*names, *noise], detail=True))
    rest = _further(table, marks, wide=wide)
    sentences = [*rest.sentences]
    if not brief:
        sentences += map(fmt.Sentence, combined_notes(table))
    foot = changes_of(table)
    if len(every) == 1 and every[0].unadjusted:
        foot += tuple(_of_stops().beside_means(every[0]))
    return replace(rest, sections=(*sections, *rest.sections), sentences=tuple(sentences), foot=foot)


def combined_notes(table: Comparison) -> list[str]:
    """Return a sentence for each other test over the tasks that has a note on its result."""
    return [f"{row.method}: {row.note}." for row in table.combined if row.note]


def _further(table: Comparison, marks: Marks, *, wide: bool = False) -> Summary:
    """Return a `Summary` with verdict lines and all that follows the first table: slices, stops, flips, sentences."""
    every, sections = table.comparisons, slice_sections(table, marks)
    if table.sequential:
        sections.append(_of_stops().stop_section(table.sequential))
    if table.full_benchmark:
        sections.append(full_section(table.full_benchmark, marks))
    if table.combined:
        title = "The tasks together, by other methods (above 0: A is better)"
        others = section(title, table.combined, _COMBINED, detail=True)
        sections.append(replace(others, below=tuple(combined_notes(table))))
    if table.questions and not wide:
        sections.append(flip_table(table.questions))
    on_slices = _on_slices(table)
    answer = on_slices[:1] if len(table.heterogeneity) == 1 else []  # whether it varies over one field was asked
    sentences = [
        *fmt.weights_line(every),
        *lost_to_adjustment(table),
        *on_slices[len(answer) :],
        *fmt.estimand_line(every),
    ]
    listings = flip_listings(table.questions) if wide else ()
    shown = sorted(overall_first(shown_rows(table)), key=lambda row: row.verdict != SCORED_DIFFERENTLY)
    lead, tones = tuple(verdict_lines(table)), tuple(map(verdict_tone, shown))
    tones = ("",) * (len(lead) - len(tones)) + tones  # a count comes first
    lead += (*answer, *filter(None, map(two_parts_words, table.full_benchmark)))
    tones += ("",) * (len(lead) - len(tones))
    return Summary(tuple(sections), marks.legend(), tuple(sentences), lead, tones, listings=listings)


def _first_screen(table: Comparison, row: Difference) -> Summary:
    """Return a `Summary` of a single difference: verdict, five figures, other choices that would change the verdict."""
    marks = Marks()
    rest = _further(table, marks)
    ends = "" if row.ci_low is None else f", {fmt.level_of([row])} CI {fmt.interval_of(row)}"
    none = fmt.scale_of(row) is fmt.PERCENT and (row.mde or 0.0) > 1
    names = fmt.names_of(row)
    figures = (
        Column("A", lambda row: _mean_and_name(row, row.mean_a, names[0]), DIFFERENCES["a"].hint),
        Column("B", lambda row: _mean_and_name(row, row.mean_b, names[1]), DIFFERENCES["b"].hint),
        Column("A − B", lambda row: f"{fmt.amount(row, row.diff)}{ends}", DIFFERENCES["diff"].hint),
        *difference_columns("p"),
        Column("smallest detectable difference", lambda row: "none" if none else fmt.amount(row, row.mde), _MDE),
    )
    title = fmt.plain(f"{fmt.what_of(row)}: {sample_words(row)}".removeprefix(": "))
    block = replace(section(title, [row], figures), stacked=True, units="")
    shown = (block, *rest.sections)
    foot = (*(_of_stops().beside_means(row) if row.unadjusted else ()), *changes(row))
    lead = rest.lead
    if any(change.name == MISSING for change in row._would_change):  # the foot says it
        bare = replace(row, if_missing=None, diagnostics=tuple({*row.diagnostics} - {"missing_matters"}))
        brief = replace(table, comparisons=tuple(bare if each is row else each for each in table.comparisons))
        lead = (*verdict_lines(brief), *lead[len(verdict_lines(table)) :])
    return replace(rest, sections=shown, lead=lead, foot=foot, codes=_codes_of(row), more=MORE)


_MDE = DIFFERENCES["mde"].hint


def _mean_and_name(row: Difference, mean: float | None, name: str) -> str:
    """Return a run's mean, followed by its model's name if known: "71.0%  gpt"."""
    return f"{fmt.mean_of(row, mean, unit=True)}{f'  {fmt.shorten(name, NAME)}' if name not in ('A', 'B') else ''}"


def _change_words(row: Difference, change: Change) -> str:
    """Return a choice that would change a row's verdict (missing answers, clusters, weights, …) with its option."""
    what = fmt.shorten(fmt.plain(change.what), NAME).replace("`", "'")
    bounds = f"; the estimate {ends}" if (ends := bounds_if_missing(row)) else ""
    return {
        MISSING: f"the {counted_of(row.n_missing, 'missing answer')} (to “{verdicts_if_missing(row)}”{bounds})",
        UNADJUSTED: "p not adjusted for the other rows (`adjust='none'`)",
        UNCLUSTERED: "questions taken as unrelated (`cluster='none'`)",
        LARGEST: f"the largest cluster left out ({what})",
        WEIGHTS: f"other weights of the tasks (`weights='{what}'`)",
    }[change.name]


def changes(row: Difference) -> list[str]:
    """Return [sentence on what would change a row's verdict], [] if nothing would."""
    found = [_change_words(row, change) for change in row._would_change]
    return [f"What would change this verdict: {'; '.join(found)}."] if found else []


def changes_of(table: Comparison) -> tuple[str, ...]:
    """Return the sentences on what would change the verdict of the single row, or of the overall row."""
    return tuple(line for row in table.comparisons for line in changes(row))


def lost_to_adjustment(table: Comparison) -> list[str]:
    """Return [sentence on the rows that are significant only before adjustment], [] if none is."""
    rows = [row for row in table.comparisons if "not_after_adjustment" in row.diagnostics]
    if not rows:
        return []
    method = {"holm": "Holm's", "bh": "Benjamini and Hochberg's"}.get(str(table.settings.get("adjust")), "the")
    where = some_of(list(map(fmt.what_of, rows)), 6)
    return [
        f"{where}: significant on its own, but not after {method} adjustment for all rows. The verdict uses the "
        "adjusted p-value."
    ]


_COMBINED = (
    TextColumn("A − B", fmt.models_of, optional=True),
    TextColumn("Metric", "metric", optional=True),
    TextColumn("Method", "method"),
    Column("n", "n", "tasks or models"),
    Column("A − B", "diff"),
    Column("SE", "se"),
    Column("df", "df", "of the t test (none: another distribution)"),
    Column("p", "p_value"),
    Column("p heterogeneity", "heterogeneity_p", "Cochran's Q: small where the tasks do not share one difference"),
)

FLIPPED = "Questions that flipped most"
Listing = tuple[str, tuple[tuple[str, str], ...]]
"""A heading and the (name, text) pairs below it."""


def flip_table(flips: Sequence[Flip], title: str = FLIPPED) -> Section:
    """Return a table of flipped questions, with both models' scores and most frequent answers.

    The most frequent answer is shown by its end, which has the result."""
    pairs, keys = set(map(fmt.pair_of, flips)), {flip.key for flip in flips}

    def shown(value: float, flip: Flip, *, mean: bool = True) -> str:
        return fmt.shown(flip, value, mean=mean, digits=fmt.digits_of_flip(flip))

    ending = "the end of {}'s most frequent answer (`wide=True` shows all)"
    some = partial(TextColumn, optional=True)
    columns = [
        some("A − B", lambda flip: fmt.models_of(flip) if len(pairs) > 1 else ""),
        some("Task", lambda flip: fmt.what_of(flip) if len(keys) > 1 else ""),
        some(
            "id",
            lambda flip: fmt.shorten(flip.question, 12) if flip.text is not None else "",
            "what the harness calls the question",
            5,
        ),
        TextColumn(
            "Question",
            lambda flip: fmt.shorten(flip.text or flip.question, 60),
            "its beginning",
        ),
        some("Cluster", lambda flip: fmt.shorten(flip.cluster or "", 24), rank=4),
        some("Target", lambda flip: fmt.shorten(flip.target or "", 16), "the answer that is right", 1),
        some("A says", lambda flip: _ending(flip.answers_a), ending.format("A"), 2),
        some("B says", lambda flip: _ending(flip.answers_b), ending.format("B"), 2),
        Column("A", lambda flip: shown(flip.mean_a, flip), "A's mean score on the question"),
        Column("B", lambda flip: shown(flip.mean_b, flip), "B's mean score on it"),
        Column("A − B", lambda flip: shown(flip.diff, flip, mean=False), "the difference"),
    ]
    return section(title, flips, columns)


def flip_listings(flips: Sequence[Flip]) -> tuple[Listing, ...]:
    """Return (heading, lines) for each flipped question: its whole text, target and all answers."""
    several, out = len(set(map(fmt.pair_of, flips))) > 1, []
    for i, flip in enumerate(flips, 1):
        cluster = f", cluster {flip.cluster}" if flip.cluster else ""
        whose = f"{fmt.models_of(flip)}, " if several else ""
        scores = " against ".join(
            fmt.shown(flip, mean, mean=True, digits=fmt.digits_of_flip(flip)) for mean in (flip.mean_a, flip.mean_b)
        )
        lines = [("Question", flip.text or "not in the log")]
        lines += [("Target", flip.target)] if flip.target is not None else []
        sides = zip(fmt.names_of(flip), (flip.answers_a, flip.answers_b), strict=True)
        lines += [(name, text) for name, answers in sides for text in counted(answers)]
        shown = tuple((fmt.plain(name), _cleaned_lines(text)) for name, text in lines)
        out.append((fmt.plain(f"{i}. {whose}{fmt.what_of(flip)}, {flip.question}{cluster}: {scores}"), shown))
    return tuple(out)


def counted(answers: Sequence[str]) -> list[str]:
    """Return each different answer once, as "(n of K) answer" if there are several answers."""
    texts = Counter(answers).most_common()
    return [f"({n} of {len(answers)}) {text}" if len(answers) > 1 else text for text, n in texts]


def _cleaned_lines(text: str) -> str:
    """Return text without control characters and empty lines, "(empty)" if nothing is left."""
    return "\n".join(filter(None, map(fmt.plain, text.splitlines()))) or "(empty)"


def _ending(answers: Sequence[str], width: int = 16) -> str:
    if not answers:
        return ""
    text = fmt.plain(Counter(answers).most_common(1)[0][0])
    return text if len(text) <= width else "…" + text[1 - width :]


def _of_stops() -> Any:
    """Import and return the module that shows how monitored runs stopped."""
    return display_of(KEYWORD)


def slice_sections(table: Any, marks: Marks) -> list[Section]:
    """Return the tables of a result's slices. [] if it has no slices."""
    if not table.slices:
        return []
    first, *more = display_of("by").sections(table, marks)
    return [replace(first, below=tuple(slice_sentences(table))), *more]


def _on_slices(table: Analysis | Comparison) -> list[str]:
    """Return the sentences on a result's slices, which a paper has below the table of slices, if there is one."""
    lines = slice_sentences(table)
    return [*map(fmt.Sentence, lines)] if table.slices else lines


def slice_sentences(table: Any) -> list[str]:
    """Return the sentences on a result's slices. [] if it has no slices."""
    return display_of("by").sentences(table) if table.slices or table.heterogeneity else []
