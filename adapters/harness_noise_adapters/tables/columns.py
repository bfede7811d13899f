"""Which column of a table is what, and what its cells hold."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness_noise.data.clusters import AUTO, text_label
from harness_noise.data.measures import numeric_fields
from harness_noise.data.native_values import is_proportion
from harness_noise.errors import InputError, parameter

from .files import Record, Rows, stem
from .presets import Getter, getter

MOST_COUNTED = 50_000_000
"""Answers that the counts of one file may stand for: 400 MB of scores."""


def cell_text(value: Any) -> str | None:
    """A cell as a key: 1.0 of a float column is 1; None where it is empty."""
    if isinstance(value, str):
        text = value.strip()
        if not text.isascii():  # a lone surrogate is no text that a file or a data frame could hold
            text = text.encode("utf-8", "backslashreplace").decode()
        return text or None
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return text_label(value)


class NoScoreError(InputError):
    """A cell of the scores is neither a number nor a verdict."""


def score_of(path: Path | Rows, line: int, column: str, value: Any) -> float:
    """A score: a number, a truth value, the word of a verdict, or NaN where the cell is empty."""
    raw = value
    if isinstance(value, str):
        plain = value.strip().lower()
        if plain in MISSING:
            return math.nan
        value = VERDICTS.get(plain, math.inf if "_" in plain else plain)  # to Python 1_0 is 10
    if value is None:
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if abs(number) > HUGE:
        shown = repr(raw) if len(repr(raw)) <= _SHOWN else f"{repr(raw)[:_SHOWN]}…"
        raise NoScoreError(
            f"{path}, line {line}: {column} {shown} is not a finite number, true or false, or another verdict "
            f"({', '.join(_KNOWN)})"
        )
    return number


def odd_scores(odd: Mapping[str, NoScoreError]) -> InputError:
    """Why some cells are no scores; all that were found."""
    first, *others = odd.values()
    if not others:
        return first
    listed = ", ".join(list(odd)[:MOST_ODD]) + (", …" if len(odd) > MOST_ODD else "")
    return InputError(f"{first}; cells that are none of these: {listed}")


def answers_of(value: Any) -> list[Any] | None:
    """The scores of several answers that one cell lists, in JSON or as Python writes them; None where it is no list."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return None
        plain = re.sub(r"\b(true|false|none|nan)\b", lambda match: _JSON[match[0].lower()], value, flags=re.IGNORECASE)
        try:
            value = json.loads(plain)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, list) and not any(isinstance(score, (list, dict)) for score in value) else None


_JSON = {"true": "true", "false": "false", "none": "null", "nan": "null"}
_SHOWN = 60
MISSING = frozenset(("", "nan", "null", "none", "na", "n/a"))
LEXICON = tomllib.loads((files(__package__) / "columns.toml").read_text(encoding="utf-8"))
VERDICTS: dict[str, float] = LEXICON["verdicts"]
"""The words of a verdict, in lower case; Inspect's letters are C, P (partly), I and N (no answer)."""
_KNOWN = ("yes/no", "pass/fail", "correct/incorrect", "resolved/unresolved", "C/P/I/N")
HUGE = 1e100
"""Scores beyond it are taken for infinite: their squares are."""


NAMES: dict[str, list[str]] = LEXICON["names"]
"""Our column → the names it goes by; the first is ours and wins over the others."""
PROMPTS: list[str] = LEXICON["more"]["prompts"]
LAST_RESORT: list[str] = LEXICON["more"]["last_resort"]
NEEDED = ("question", "score")
OFF = "none"
"""What is said of a column that is not to be taken."""
MOST_ODD = 8
"""Cells that are no scores, of which a message names as many."""
_CAUSE = re.compile(r"(?<![a-z])(seed|prompt|template|instruction|phrasing|judge|shot|few_?shot)s?(?![a-z])")
"""Words for what moves the answers to all questions together."""
HEAD = 100
"""Rows that are looked at to learn the columns of a file that has no header."""


def _filled(record: Record, specs: Mapping[str, Getter]) -> Record:
    return {**record, **{text: get(record) for text, get in specs.items()}} if specs else record


@dataclass(slots=True)
class TableColumns:
    """Which of the file's columns is which of ours."""

    names: dict[str, str]
    """Our name → the file's."""
    unused: list[str]
    count: str | None = None
    """eval-arena's number of answers, where `score` is the share of them that was right."""
    chosen: tuple[str, ...] = ()
    """The file's columns that the user named."""
    lists: bool = False
    """Whether a cell has held the scores of several answers."""
    words: str | None = None
    """The column with the words of the question, where `question` is an id beside it."""
    wording: str | None = None
    """The column whose words verify that two runs mean the same question: `words`, `question` itself or a prompt."""

    target: str = ""
    answer: str = ""
    """The columns with the right answer and the model's, where there are such."""
    specs: dict[str, Getter] = field(default_factory=dict)
    """Columns that are no columns of the file, but a dotted path or a template of them."""
    off: tuple[str, ...] = ()
    """Our names that the user switched off with `none`."""
    numeric: tuple[str, ...] = ()
    """The columns of numbers that are none of ours, by the first rows."""

    @property
    def question(self) -> str:
        return self.names["question"]

    @classmethod
    def of(cls, path: Path | Rows, head: Sequence[Record], chosen: Mapping[str, str]) -> TableColumns:
        have = list(dict.fromkeys(name for record in head for name in record))
        unknown = [name for name in chosen if name not in NAMES]
        if unknown:
            raise InputError(f"`columns` {unknown[0]}=…: accepted names are {', '.join(NAMES)}, rows")
        off = [ours for ours, theirs in chosen.items() if theirs == OFF and OFF not in have and ours not in NEEDED]
        chosen = {ours: theirs for ours, theirs in chosen.items() if ours not in off}
        specs = {}
        for ours, theirs in chosen.items():
            if theirs not in have:
                specs[theirs] = get = getter(theirs)
                if all(get(record) is None for record in head):
                    raise InputError(
                        f"{path}: `columns` {ours}={theirs}: no such column; there are {', '.join(have)}. What is true "
                        f"of one file only stands behind its name: "
                        f"{parameter('columns', {f'{stem(path)}:{ours}': 'COLUMN'})}"
                    )
        head = [_filled(record, specs) for record in head]
        plain = {name: plain_name(str(name)) for name in have}
        free = [name for name in have if name not in chosen.values()]
        names = dict(chosen)
        words = None if "question" in chosen else _beside_words(names, free, plain, head)
        count = None
        for ours, aliases in NAMES.items():
            if ours in names or ours in off:
                continue
            column = _named(path, ours, aliases, free, plain)
            if column is None and ours == "question":
                column = next(iter(_last_resort(free, plain, head)), None)
            if column is not None:
                names[ours] = column
        if "score" not in names:
            counted = {plain[name]: name for name in free}
            if "pass1" in counted:
                names["score"], count = counted["pass1"], counted.get("count")
        if "score" not in names:
            raise InputError(_no_score(path, have, head))
        if "question" not in names:
            raise InputError(
                f"{path}: no column says which question a row is about; there are {', '.join(have)}: name it, as in "
                f"{parameter('columns', {'question': _likely(have, names, head)})}"
            )
        if count is not None:
            names.pop("repeat", None)
        wording = words or _telling(names["question"], "question" in chosen, free, plain, head)
        used = {*names.values(), count, words}
        unused = [name for name in have if name not in used and not mentioned(name, tuple(specs))]
        others = {plain[name]: name for name in reversed(have) if name not in names.values()}
        target = next((others[name] for name in LEXICON["more"]["targets"] if name in others), "")
        return cls(
            names,
            unused,
            count,
            tuple(chosen.values()),
            words=words,
            wording=wording,
            target=target,
            answer=next(
                (others[name] for name in LEXICON["more"]["answers"] if others.get(name, target) != target), ""
            ),
            specs=specs,
            off=tuple(off),
            numeric=tuple(name for name in numeric_fields(head[0]) if name in unused),
        )

    def filled(self, record: Record) -> Record:
        """A row with what the SPECs among the columns say of it."""
        return _filled(record, self.specs) if self.specs else record

    @property
    def right_or_wrong(self) -> bool:
        """Whether the scores are counts of right answers, or their column is called as right or wrong ones are."""
        return self.count is not None or is_proportion(self.names["score"])

    @property
    def cause(self) -> str | None:
        """The column of repeats, where its name says that all questions share what it tells apart."""
        name = self.names.get("repeat", "")
        return name if _CAUSE.search(name.lower()) else None

    def counted(self, path: Path | Rows, line: int, record: Record) -> tuple[int, int]:
        """Eval-arena's right answers, and of how many."""
        name, of = self.names["score"], str(self.count)
        share, count = (score_of(path, line, column, record.get(column)) for column in (name, of))
        right = share * count
        if count != count or count < 1 or count != round(count) or not 0 <= share <= 1:
            raise InputError(f"{path}, line {line}: {name} must be a share in [0, 1] of {of} ≥ 1 answers")
        if abs(right - round(right)) > 1e-6 * max(1.0, count):
            raise InputError(
                f"{path}, line {line}: {share:g} of {count:g} answers is no whole number of right answers; give one "
                "row for each answer instead"
            )
        return round(right), round(count)

    def note(self, path: Path | Rows, specs: Sequence[str] = ()) -> str:
        """Which columns were taken, and which were not, also not for a SPEC of what is known of the questions."""
        taken = [f"{theirs} as {ours}" for ours, theirs in self.names.items() if ours != theirs]
        text = f"{path.name}: took {', '.join(taken)}" if taken else f"{path.name}: columns taken by their names"
        if self.words is not None:
            text += f", {self.words} as its words"
        if self.count is not None:
            text += f", {self.count} as the number of answers (their order is unknown)"
        if self.lists:
            text += f"; the items of a list in {self.names['score']} are the repeats of its question, in order"
        elif "repeat" not in self.names and self.count is None:
            text += "; rows of one question are its repeats, in order"
        unused = [name for name in self.unused if AUTO not in specs and not mentioned(name, specs)]
        return text + (f"; not used: {', '.join(unused)}" if unused else "")


def plain_name(name: str) -> str:
    """A name as it is looked up: `Question ID`, `question-id` and `questionId` are `question_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip()).lower().replace(" ", "_").replace("-", "_")


def _named(
    path: Path | Rows, ours: str, aliases: Sequence[str], free: Sequence[str], plain: Mapping[str, str]
) -> str | None:
    """The one column that goes by a known name; ours wins, two others are ambiguous."""
    matches = [name for name in free if plain[name] in aliases]
    matches = matches or [name for name in free if plain[name] in LEXICON["next"].get(ours, ())]
    own = [name for name in matches if plain[name] == aliases[0]]
    if len(own) == 1:
        return own[0]
    if len(matches) > 1:
        several = " and ".join(map(repr, matches))
        raise InputError(f"{path}: {several} could each be the {ours}: say which with `columns` {ours}={matches[0]}")
    return matches[0] if matches else None


def _last_resort(free: Sequence[str], plain: Mapping[str, str], head: Sequence[Record]) -> list[str]:
    """The columns whose names may mean anything, the likeliest first: one of random ids names rows, not questions."""
    matches = [name for last in LAST_RESORT for name in free if plain[name] == last]
    return sorted(matches, key=lambda name: all(_UUID.fullmatch(str(record.get(name))) for record in head))


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def _beside_words(
    names: dict[str, str], free: Sequence[str], plain: Mapping[str, str], head: Sequence[Record]
) -> str | None:
    """Takes the one id that stands beside the words of a question for the question; returns the words' column."""
    worded = (name for kind in LEXICON["more"]["worded"] for name in free if plain[name] == kind)
    words = next((name for name in worded if is_worded([cell_text(record.get(name)) for record in head])), None)
    ids = [name for name in free if plain[name] in NAMES["question"] and plain[name] not in LEXICON["more"]["worded"]]
    if not ids:
        ids = _last_resort(free, plain, head)[:1]
    if words is None or len(ids) != 1:
        return None
    names["question"] = ids[0]
    return words


def _telling(
    question: str, vouched: bool, free: Sequence[str], plain: Mapping[str, str], head: Sequence[Record]
) -> str | None:
    """The column with the words of a question that has no `words` beside it; an id that the user named needs none."""
    prompts = () if vouched else (name for kind in PROMPTS for name in free if plain[name] == kind)
    n_questions = len({cell_text(record.get(question)) for record in head})
    for name in (question, *prompts):
        words = [_words(record.get(name)) for record in head]
        if is_worded(words) and 2 * len(set(words)) > n_questions:  # an instruction that all share says nothing
            return str(name)
    return None


def _words(value: Any) -> str | None:
    return cell_text(value) if isinstance(value, str) else None


def _no_score(path: Path | Rows, have: Sequence[str], head: Sequence[Record]) -> str:
    inner = [f"{name}.{key}" for name in have if isinstance(cell := head[0].get(name), Mapping) for key in cell]
    names = [name for name in (*have, *inner) if not _COUNTER.search(str(name))]
    cells = {name: list(map(_scores_in, map(getter(name), head))) for name in names if any(map(getter(name), head))}
    scores = [name for name, values in cells.items() if None not in values]
    open_ = [name for name in scores if not _OF_KEY.search(name)]
    beyond = {name for name in open_ for found in cells[name] for score in found or () if score < 0 or score > 1}
    shares = [name for name in open_ if name in have and name not in beyond]
    named = next((name for name in open_ if _OF_SCORE.search(name)), None)
    likely = named or (shares[0] if len(shares) == 1 else "COLUMN")
    listed = ", ".join([*map(str, have[:12]), *(["…"] if len(have) > 12 else [])])
    text = f"{path}: no column holds the scores; there are {listed}. "
    text += f"If one of them does, name it, as in {parameter('columns', {'score': likely})}"
    if len(scores) >= 2 and likely == "COLUMN":
        text += (
            f". If each of the {len(scores)} columns of numbers is a model, this is a wide table: it needs one row "
            "for each answer with the columns question, model, score (pandas: "
            "`frame.melt(id_vars=…, var_name='model', value_name='score')`)"
        )
    return text


def like(kind: str) -> re.Pattern[str]:
    """What a name has in it that is of this kind."""
    return re.compile("|".join(LEXICON["parts"][kind]), re.IGNORECASE)


_COUNTER, _OF_KEY, _OF_SCORE = map(like, ("counter", "key", "score"))


def _likely(have: Sequence[str], names: Mapping[str, str], head: Sequence[Record]) -> str:
    """A column that may tell the questions, for the message that asks for it: words that differ from row to row."""
    for name in have:
        cells = [_words(record.get(name)) for record in head]
        answer = re.search("answer|respon|output|predict|completion|generat|reason", str(name).lower())
        if name not in names.values() and not answer and is_worded(cells) and 2 * len(set(cells)) > len(cells):
            return str(name)
    return "COLUMN"


def _scores_in(value: Any) -> list[float] | None:
    """The scores in a cell, which may be a list; None where it holds none."""
    several = answers_of(value)
    try:
        return [score_of(Path(), 0, "", each) for each in ([value] if several is None else several)]
    except InputError:
        return None


def mentioned(name: str, specs: Sequence[str]) -> bool:
    """Whether a column is one that the SPECs speak of."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", spec) for spec in specs)


def is_worded(values: Sequence[str | None]) -> bool:
    """Whether a column holds sentences, and not names."""
    return 2 * sum(value is not None and " " in value for value in values) > len(values)
