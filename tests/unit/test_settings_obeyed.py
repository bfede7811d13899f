"""Every setting is obeyed or refused by everything that it can be given to; none is taken and forgotten."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from inspect import getdoc, signature
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import settings
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_runs
from harness_noise.choices import INTERVALS, TESTS
from harness_noise.cli import main
from harness_noise.cli.commands import cli
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run
from harness_noise.extra.arena import profiles
from harness_noise.settings import KEYWORDS, REFUSALS, Settings

FIELDS = {item.name: item for item in fields(Settings)}
SHARED = {"runs_shared": {"repeats_are": "runs"}}
"""Field → what must be chosen beside it."""
CHANGED = [
    *(("se", value) for value in ("cr0", "cr1", "cr3")),
    *(("interval", value) for value in INTERVALS.named()),
    *(("test", value) for value in TESTS.named()[1:]),
    *(("adjust", value) for value in ("bh", "none")),
    ("level", 0.8), ("margin", 0.9), ("unpaired", True), ("repeats_are", "runs"), ("runs_shared", True),
    ("questions_are", "fixed"), ("range", (-1.0, 2.0)), ("missing", "zero"), ("cluster", "template"),
    ("seed", 3), ("resamples", 300), ("weights", "size"), ("chance", 0.2),
    ("only", ("template != t1",)),
]  # fmt: skip
COMMON = {"cluster", "level", "se", "interval", "test", "adjust"}
NAMES = [f"{name}={value}" for name, value in CHANGED]


def test_every_field_is_tried():
    assert {name for name, _ in CHANGED} == set(FIELDS)


def obeys(consumer, name, value):
    values = settings.obeyed(name, consumer)
    return values is None or value in values


NOT_RESAMPLED = ("compare_in_sequence", "boundaries", "estimate_from_part", "estimate_with_labels")


def beside(consumer, name, value):
    """What must be chosen for the field to change a number at all."""
    if name in ("seed", "resamples") and consumer not in NOT_RESAMPLED:
        return {"arena": {"test": "wild"}, "compare": {"test": "bootstrap"}}.get(consumer, {"interval": "bootstrap"})
    if name == "interval" and consumer not in ("plan", "counts", "profile", "factors"):
        other = "wilson" if consumer in ("analyze", "estimate", "arena", "estimate_with_labels") else "bootstrap"
        return {"interval": other if value == "t" else "t"}
    if (consumer, name) == ("plan", "se"):
        return {"cluster": "template"}
    return SHARED.get(name, {})


def test_every_consumer_has_a_sentence_and_every_sentence_a_consumer():
    consumers = {consumer for name in FIELDS for consumer in settings.consumers(name)}
    consumers |= {name for by in KEYWORDS.values() for name in by.split()}
    assert consumers | {"sides", "against", "given_runs", "strata"} == {name for name in REFUSALS if "." not in name}
    for name, sentence in REFUSALS.items():
        assert len(sentence.format(what="`test='wild'`")) > 40, name
        consumer, _, keyword = name.partition(".")
        assert not keyword or settings.obeyed(keyword, consumer) is not None, f"{name} is obeyed"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Three models on three tasks: twice 60 questions of 9 templates × 3 answers; and one in which all differ alike."""
    rng = np.random.default_rng(3)
    folder = tmp_path_factory.mktemp("runs")
    for model, gain in (("a", 0.3), ("b", 0.0), ("c", -0.2)):
        lines = ["task,question,template,repeat,score"]
        for task in ("one", "two"):
            for i in range(60):
                p = 1 / (1 + np.exp(-gain - np.sin(i // 7)))
                lines += [f"{task},{i},t{i // 7},{k},{int(rng.random() < p)}" for k in range(3)]
        lines[7] = lines[7][:-1]
        lines += [f"flat,{i},t{i // 7},{k},{0.25 + 0.5 * (model == 'a')}" for i in range(20) for k in range(3)]
        (folder / f"{model}.csv").write_text("\n".join(lines) + "\n")
    paths = [str(folder / f"{model}.csv") for model in "abc"]
    profiles.write(hn.arena(paths, tasks=("one",)), folder / "profile.json")
    return paths


def numbers(result):
    """All that a result says but the settings it records."""
    return json.dumps({key: value for key, value in result.to_dict().items() if key != "settings"})


ARRAYS = np.random.default_rng(5).random((2, 40, 3)).round(1)
ARRAYS[0, 3, 1] = np.nan


def arrays(flat):
    """Scores of A and B, and clusters; a range says something of a difference only where nothing varies."""
    a, b = (np.full((20, 3), 0.75), np.full((20, 3), 0.25)) if flat else ARRAYS
    return a, b, np.minimum(np.arange(len(a)) // 3, 4)  # of unequal sizes: of equal ones CR1 is CR2


def array(flat):
    a, _, clusters = arrays(flat)
    return a, clusters


def labelled():
    """Scores of which one is missing, and labels of every third question."""
    rng = np.random.default_rng(6)
    scores = (rng.random((90, 2)) < 0.9).astype(float)
    scores[3, 1] = np.nan
    labels = np.where(np.arange(90) % 3 == 0, scores[:, 0], np.nan)
    return scores, labels


def in_sequence(flat):
    """Scores of A and B that are decided late, or alike everywhere, and clusters of unequal sizes."""
    rng = np.random.default_rng(8)
    a, b = rng.random((2, 90, 3))
    a[5, 1] = np.nan
    a, b = (np.full((90, 3), x) for x in (0.9, 0.1)) if flat else (a, b)
    return a, b, np.arange(90) // 2 - np.arange(90) // 30


def from_part():
    """40 scores of which one is missing, which of 200 questions they are of, and a reference."""
    rng = np.random.default_rng(9)
    known, asked = rng.random(200), rng.permutation(200)[:40]
    scores = np.stack([known[asked] > 0.98, rng.random(40) > 0.99], axis=1).astype(float)
    scores[3] = np.nan, 1.0
    return scores, asked, known


LIBRARY = {
    "compare_in_sequence": lambda tables, **choices: hn.compare_in_sequence(
        *in_sequence("range" in choices), **choices
    ),
    "estimate_from_part": lambda tables, **choices: hn.estimate_from_part(*from_part(), **choices),
    "estimate": lambda tables, **choices: hn.estimate(*array("range" in choices), **choices),
    "estimate_difference": lambda tables, **choices: hn.estimate_difference(
        *arrays("range" in choices)[: 2 if "unpaired" in choices else 3], **choices
    ),
    "estimate_with_labels": lambda tables, **choices: hn.estimate_with_labels(*labelled(), **choices),
    "analyze": lambda tables, **choices: hn.analyze(tables[0], **choices),
    "compare": lambda tables, **choices: hn.compare(*tables[:2], **choices),
    "arena": lambda tables, **choices: hn.arena(tables, **choices),
    "plan": lambda tables, **choices: hn.plan(runs=tables[:2], effect=0.05, tasks="one", **choices),
}


@pytest.mark.parametrize("entry", LIBRARY)
def test_a_function_names_the_common_settings_that_it_obeys(entry):
    """Those that are not given leave the field of `settings` as it is, whatever its default."""
    function = getattr(hn, entry)
    own, words = signature(function).parameters, getdoc(function).partition("\n**choices\n")[2].partition("Returns")[0]
    obeyed = {name for name in FIELDS if entry in settings.consumers(name)}
    common = obeyed & COMMON
    assert {name for name in own if name in FIELDS} <= {"level"}
    assert {name for name in COMMON if f"`{name}`" in words} == common - set(own)
    assert own["settings"].default is None


@pytest.mark.parametrize("entry", LIBRARY)
def test_settings_are_taken_whole_and_keywords_stand_in_for_their_fields(tables, entry):
    call, other = LIBRARY[entry], {"se": "cr0"} if obeys(entry, "se", "cr0") else {}
    seen = numbers(call(tables, level=0.8, **other))
    assert numbers(call(tables, settings=Settings(level=0.8, **other))) == seen
    assert numbers(call(tables, settings=Settings(level=0.9, **other), level=0.8)) == seen
    assert numbers(call(tables, settings=Settings(level=0.8), level=0.95)) == numbers(call(tables))


@pytest.fixture(scope="module")
def unchanged(tables):
    """What a function says with these choices, asked once."""

    @cache
    def asked(entry, choices):
        return numbers(LIBRARY[entry](tables, **dict(choices)))

    return lambda entry, choices: asked(entry, tuple(choices.items()))


@pytest.mark.parametrize(("name", "value"), CHANGED, ids=NAMES)
@pytest.mark.parametrize("entry", LIBRARY)
def test_in_python(tables, unchanged, entry, name, value):
    call, base = LIBRARY[entry], beside(entry, name, value)
    if not obeys(entry, name, value):
        with pytest.raises((TypeError, hn.InputError), match=f"{name}|repeats_are" if name == "runs_shared" else name):
            call(tables, **{**base, name: value})
    elif value == "clopper-pearson":  # for other data: these have several answers
        with pytest.raises(hn.InputError, match="interval clopper-pearson is exact only"):
            call(tables, **{name: value})
    elif value == "bootstrap-t" and entry in ("estimate", "compare"):  # these are scores, in few clusters
        with pytest.raises(hn.InputError, match=r"needs 6 clusters or more|is for measures such as cost"):
            call(tables, **{name: value})
    elif entry == "plan" and name in ("seed", "resamples"):  # of a plan only metrics over all questions are resampled
        runs = corpus_runs()
        plain, other = (hn.plan(runs=runs, effect=0.05, **more) for more in ({}, {name: value}))
        assert numbers(plain) != numbers(other)
    elif entry == "plan" and name == "range":  # a plan's effect is on the metric's scale
        with pytest.raises(hn.InputError, match=r"`effect` 1\.5 is on the scale"):
            hn.plan(runs=tables[:2], effect=1.5, tasks="one")
        assert hn.plan(runs=tables[:2], effect=1.5, tasks="one", range=value).effect == 1.5
    else:
        base = {"range": (0.0, 1.0)} if name == "range" else base
        assert unchanged(entry, base) != numbers(call(tables, **{**base, name: value}))


def corpus_runs():
    rng = np.random.default_rng(0)
    keys = Questions(tuple(map(str, range(30))))
    runs = []
    for model, gain in (("a", 0.02), ("b", 0.0)):
        sums = (rng.random((30, 2, 1)) + gain) / 30
        item = CorpusScores("t", "bleu", "none", keys, stats=sums, value=lambda total: total[..., 0])
        runs.append(Run(model, model, "test", corpus=(item,)))
    return runs


@pytest.mark.parametrize(("name", "value"), CHANGED, ids=NAMES)
@pytest.mark.parametrize("consumer", ["corpus", "corpus_difference"])
def test_metrics_over_all_questions_at_once(consumer, name, value):
    """Runs that have nothing else obey their settings; what their pages say that they pass over, they may pass over."""
    passed_over = {"se", "adjust", "missing", "cluster", "weights", "chance", "only"}
    passed_over |= {"range"} if consumer == "corpus_difference" else set()
    base = {"interval": "bootstrap"} if name in ("seed", "resamples") else SHARED.get(name, {})
    base = {"interval": "bootstrap" if value == "t" else "t"} if name == "interval" else base
    a, b = corpus_runs()

    def of(**choices):
        chosen = Settings(**choices)
        found = compare_runs([(a, b)], chosen) if consumer == "corpus_difference" else analyze_runs([a], chosen)
        return numbers(found)

    entry = "compare" if consumer == "corpus_difference" else "analyze"
    if not (obeys(consumer, name, value) and obeys(entry, name, value)):
        with pytest.raises(hn.InputError):
            of(**{**base, name: value})
    elif name not in passed_over and value not in ("sign", "wilson", "korn-graubard", "clopper-pearson"):
        assert of(**base) != of(**{**base, name: value})
    if (entry, value) == ("compare", "sign"):
        assert '"test": "t"' in of(test="sign")  # and the row says so


FLAGS = {
    "only": "--only={0[0]}",
    "range": "--range={0[0]},{0[1]}",
    "unpaired": "--unpaired",
    "runs_shared": "--runs-shared",
}
COMMANDS = {
    # consumer: command, and what it is given
    "analyze": ("analyze", lambda a, b: (a,)),
    "compare": ("compare", lambda a, b: (a, b)),
    "arena": ("arena", lambda a, b: (a, b, a.replace("a.csv", "c.csv"))),
    "factors": ("factors", lambda a, b: (a, b, "--task", "one", "--factor", "run=run")),
    "counts": ("compare", lambda a, b: ("74/100", "72/100")),
    "profile": ("compare", lambda a, b: ("0.74", "0.72", "--profile", str(Path(a).parent / "profile.json"))),
    "plan": ("plan", lambda a, b: ("--from", a, b, "--task", "one", "--effect", "0.05")),
}


def flags(choices):
    return [
        FLAGS.get(name, "--{}={{0}}".format(name.replace("_", "-"))).format(value) for name, value in choices.items()
    ]


@pytest.fixture(scope="module")
def printed():
    """(consumer, choices) → what was printed with these choices."""
    return {}


@pytest.mark.parametrize(("name", "value"), CHANGED, ids=NAMES)
@pytest.mark.parametrize("consumer", COMMANDS)
def test_on_the_command_line(tables, capsys, printed, consumer, name, value):
    command, arguments = COMMANDS[consumer]

    def run(choices):
        code = main([command, *arguments(*tables[:2]), *flags(choices), "--format", "json"])
        out, err = capsys.readouterr()
        return code, {k: v for k, v in (json.loads(out) if out else {}).items() if k != "settings"}, err

    options = {option for item in cli.get_command(None, command).params for option in item.opts}
    flag = "--" + name.replace("_", "-")
    base = beside(consumer, name, value) if command != "plan" else {}
    if not options >= {item.partition("=")[0] for item in flags(base)}:
        base = {}
    code, found, err = run({**base, name: value})
    if flag not in options:
        assert (code, "No such option" in err) == (2, True)
    elif (consumer, value) == ("compare", "bootstrap-t"):  # these are scores
        assert (code, "is for measures such as cost" in err) == (2, True)
    elif obeys(consumer, name, value) and value != "clopper-pearson" and (consumer, name) != ("plan", "range"):
        base = {"range": (0.0, 1.0)} if name == "range" else base
        assert code == 0, err
        alone = consumer in ("counts", "profile") and name in ("adjust", "unpaired")  # one row, of unpaired counts
        alone |= consumer == "plan" and name in ("seed", "resamples")  # of a plan only metrics over all questions
        before = (consumer, *base.items())
        if before not in printed:
            printed[before] = run(base)[1]
        assert (found != printed[before]) != alone
    elif (consumer, name) != ("plan", "range"):
        assert code == 2
        assert "Invalid value" in err or flag in err or any(item.partition("=")[0] in err for item in flags(base))


def test_live_runs_offer_what_a_mean_obeys():
    from harness_noise_adapters.inspect_logs import flags as inspect
    from harness_noise_adapters.lm_eval_harness.live import options as lm_eval

    for name in {*inspect.NAMES.values(), *lm_eval._SETTINGS}:
        assert "analyze" in settings.consumers(name), name
