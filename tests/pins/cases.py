"""The cases: every command on every input under several settings, by the command line alone.

Paths are relative to the folder of inputs, which is the working directory; what a case writes goes to `out`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pins.inputs import PAIRS

Arguments = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One call of the command line."""

    name: str
    arguments: Arguments
    copied: Arguments = field(default=())
    """Inputs that are copied to `out` before, because the command changes them."""


JSON = ("--format", "json")
TEXTS = ("table", "markdown", "latex", "csv")

_COMPUTING: Mapping[str, Arguments] = {
    "cr0": ("--se", "cr0"),
    "cr1": ("--se", "cr1"),
    "cr3": ("--se", "cr3"),
    "level80": ("--level", "0.8"),
    "level999": ("--level", "0.999"),
    "runs": ("--repeats-are", "runs"),
    "runs-cr3": ("--repeats-are", "runs", "--se", "cr3"),
    "fixed": ("--questions-are", "fixed"),
    "range01": ("--range", "0,1"),
    "range-wide": ("--range=-2,100",),
    "zero": ("--missing", "zero"),
    "uncl": ("--cluster", "none"),
    "task": ("--cluster", "task"),
}
ANALYZE: Mapping[str, Arguments] = {
    "default": (),
    **_COMPUTING,
    "t": ("--interval", "t"),
    "wilson": ("--interval", "wilson"),
    "clopper": ("--interval", "clopper-pearson"),
    "korn": ("--interval", "korn-graubard"),
    "boot": ("--interval", "bootstrap"),
    "fixed-t": ("--questions-are", "fixed", "--interval", "t", "--level", "0.9"),
    "quiet": ("-q",),
}
COMPARE: Mapping[str, Arguments] = {
    "default": (),
    **_COMPUTING,
    "sign": ("--test", "sign"),
    "permutation": ("--test", "permutation"),
    "boot": ("--test", "bootstrap"),
    "wild": ("--test", "wild"),
    "wild-cr3": ("--test", "wild", "--se", "cr3", "--level", "0.9"),
    "wild-margin": ("--test", "wild", "--margin", "0.05"),
    "margin": ("--margin", "0.1"),
    "margin0": ("--margin", "0"),
    "bh": ("--adjust", "bh"),
    "unadjusted": ("--adjust", "none"),
    "by-size": ("--weights", "size"),
    "unpaired": ("--unpaired",),
    "unpaired-boot": ("--unpaired", "--test", "bootstrap"),
    "unpaired-cr3": ("--unpaired", "--se", "cr3"),
    "shared": ("--repeats-are", "runs", "--runs-shared"),
    "questions": ("--questions", "4"),
    "fixed-margin": ("--questions-are", "fixed", "--margin", "0.1"),
}
ARENA: Mapping[str, Arguments] = {
    "default": (),
    "cr0": ("--se", "cr0"),
    "cr3": ("--se", "cr3"),
    "sign": ("--test", "sign"),
    "wild": ("--test", "wild"),
    "bh": ("--adjust", "bh"),
    "unadjusted": ("--adjust", "none"),
    "level80": ("--level", "0.8"),
    "runs": ("--repeats-are", "runs"),
    "fixed": ("--questions-are", "fixed"),
    "uncl": ("--cluster", "none"),
    "zero": ("--missing", "zero"),
    "boot": ("--interval", "bootstrap"),
}
WIDE = frozenset(
    (
        "ragged", "clustered", "crossed", "grouped", "few", "zero", "missing", "k1", "percent", "runs", "sides",
        "live-inspect", "many",
    )
)  # fmt: skip
"""The runs that are asked under every setting; the others under those of `_SOME`, the slow ones under `_FEW`."""
SLOW = frozenset(("live-lm-eval", "live", "truthfulqa", "masakhaner", "demo", "demo-all", "cruxeval", "mmlu"))
"""Many resamples of metrics that are not means, or many answers."""
_FEW = frozenset(("default", "cr0", "runs", "fixed"))
_SOME = frozenset(("default", "cr0", "cr3", "runs", "fixed", "zero", "uncl", "t", "sign", "wild", "margin", "unpaired"))
_ARENA_TABLES = ("plain", "clustered", "grouped", "missing", "percent", "zero", "many", "arena_counts", "crossed")
_EXTRA: Mapping[str, Mapping[str, Arguments]] = {
    "crossed": {
        "two-ways": ("--cluster", "template*language"),
        "twice": ("--cluster", "table=template", "--cluster", "table=language"),
        "template": ("--cluster", "template"),
        "jinja": ("--cluster", "{{template}}/{{language}}"),
        "two-ways-cr3": ("--cluster", "template*language", "--se", "cr3"),
        "two-ways-fixed": ("--cluster", "template*language", "--questions-are", "fixed"),
        "two-ways-runs": ("--cluster", "template*language", "--repeats-are", "runs"),
    },
    "grouped": {
        "groups": ("--group", "sums=sum_*", "--group", "all=*"),
        "groups-cr0": ("--group", "sums=sum_*", "--se", "cr0"),
        "groups-cr3": ("--group", "sums=sum_*", "--se", "cr3"),
        "groups-runs": ("--group", "sums=sum_*", "--repeats-are", "runs"),
        "groups-fixed": ("--group", "sums=sum_*", "--questions-are", "fixed"),
        "groups-task": ("--group", "sums=sum_*", "--cluster", "task"),
        "groups-none": (
            "--group",
            "none=nothing*",
        ),
        "one": ("--task", "sum_add"),
        "two": ("--task", "sum_*", "--task", "alone"),
        "spec": ("--cluster", "sum_add=none"),
    },
    "tasks57": {
        "groups": ("--group", "subjects=subject_*"),
        "groups-boot": ("--group", "subjects=subject_*", "--interval", "bootstrap"),
        "groups-task": ("--group", "subjects=subject_*", "--cluster", "task"),
        "halves": ("--group", "low=subject_[0-2]*", "--group", "high=subject_[3-5]*"),
    },
    "metrics": {
        "metric": ("--metric", "acc"),
        "scorer": ("--scorer", "strict"),
        "both": ("--metric", "f*", "--scorer", "strict"),
        "absent": ("--metric", "bleu"),
    },
    "percent": {"range100": ("--range", "0,100"), "range-wrong": ("--range", "0,50")},
    "signed": {"range": ("--range=-1,1",)},
    "plain": {"absent": ("--task", "nothing"), "columns": ("--columns", "question=question,score=score")},
    "runs": {"columns": ("--columns", "cluster=repeat")},
}
_COMPARE_EXTRA: Mapping[str, Mapping[str, Arguments]] = {
    "grouped": {
        "groups-bh": ("--group", "sums=sum_*", "--adjust", "bh"),
        "groups-wild": ("--group", "sums=sum_*", "--test", "wild"),
        "groups-sign": ("--group", "sums=sum_*", "--test", "sign"),
        "groups-perm": ("--group", "sums=sum_*", "--test", "permutation"),
        "groups-by-size": ("--group", "sums=sum_*", "--weights", "size"),
        "groups-unpaired": ("--group", "sums=sum_*", "--unpaired"),
        "groups-shared": ("--group", "sums=sum_*", "--repeats-are", "runs", "--runs-shared"),
    },
    "tasks57": {
        "groups-by-size": ("--group", "subjects=subject_*", "--weights", "size"),
        "groups-bh": ("--group", "subjects=subject_*", "--adjust", "bh"),
        "groups-unpaired": ("--group", "subjects=subject_*", "--unpaired"),
    },
    "crossed": {
        "two-ways-wild": ("--cluster", "template*language", "--test", "wild"),
        "two-ways-unpaired": ("--cluster", "template*language", "--unpaired"),
    },
    "percent": {"margin-points": ("--range", "0,100", "--margin", "5"), "margin-huge": ("--margin", "150")},
}
GATE: Mapping[str, Arguments] = {
    "default": (),
    "margin": ("--margin", "0.05"),
    "no-loss": ("--rule", "no-loss", "--margin", "0.1", "--self-test"),
    "ratio": ("--ratio", "0.9"),
    "pooled": ("--pooled",),
    "sign": ("--test", "sign"),
    "wild": ("--test", "wild", "--margin", "0.05"),
    "unadjusted": ("--adjust", "none"),
    "skip": ("--skip-missing",),
    "zero": ("--missing", "zero"),
    "vouched": ("--vouch", "limit"),
    "fixed": ("--questions-are", "fixed"),
}
_CLASHES: Mapping[str, Arguments] = {
    "level": ("--level", "1.5"),
    "level0": ("--level", "0"),
    "margin": ("--margin=-0.1",),
    "se": ("--se", "cr9"),
    "range": ("--range", "1,0"),
    "range-words": ("--range", "low"),
    "shared": ("--runs-shared",),
    "shared-unpaired": ("--repeats-are", "runs", "--runs-shared", "--unpaired"),
    "unpaired-sign": ("--unpaired", "--test", "sign"),
    "unpaired-wild": ("--unpaired", "--test", "wild"),
    "wild-boot": ("--test", "wild", "--interval", "bootstrap"),
    "fixed-sign": ("--questions-are", "fixed", "--test", "sign"),
    "fixed-cr3": ("--questions-are", "fixed", "--se", "cr3"),
    "fixed-runs": ("--questions-are", "fixed", "--repeats-are", "runs"),
    "fixed-unpaired": ("--questions-are", "fixed", "--unpaired"),
    "fixed-boot": ("--questions-are", "fixed", "--interval", "bootstrap"),
    "runs-wild": ("--repeats-are", "runs", "--test", "wild"),
    "runs-boot": ("--repeats-are", "runs", "--interval", "bootstrap"),
    "cluster": ("--cluster", "nowhere"),
    "cluster-jinja": ("--cluster", "{{ broken"),
    "cluster-three": ("--cluster", "a*b*c"),
    "columns": ("--columns", "question"),
    "columns-absent": ("--columns", "score=nowhere"),
    "group": ("--group", "sums"),
    "models": ("--models", "a"),
    "models-absent": ("--models", "a,z"),
    "baseline-models": ("--against", "tables/side_a.csv", "--models", "a,b"),
    "option": ("--no-such-option",),
    "questions": ("--questions=-1",),
}


def every(inputs: Path) -> list[Case]:
    """All cases, for what lies in the folder of inputs."""
    cases = [
        *_tables(),
        *_arenas(),
        *_harnesses(inputs),
        *_harness_arenas(),
        *_gates(),
        *_plans(),
        *_factors(),
        *_exports(inputs),
        *_others(),
    ]
    names = [case.name for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two cases of one name: {sorted(twice)}")
    return cases


def _settings(command: str, run: str, arguments: Arguments, settings: Mapping[str, Arguments]) -> Iterator[Case]:
    asked = _FEW if run in SLOW else _SOME
    whole = run in WIDE or not any(settings is common for common in (ANALYZE, COMPARE, ARENA))
    for name, more in settings.items():
        if whole or name in asked:
            yield Case(f"{command}/{run}/{name}", (command, *arguments, *more, *JSON))


def _texts(command: str, run: str, arguments: Arguments) -> Iterator[Case]:
    for form in ("table",) if run in SLOW else TEXTS:
        yield Case(f"{command}/{run}/as-{form}", (command, *arguments, "--format", form))


def _tables() -> Iterator[Case]:
    for name in PAIRS:
        path = f"tables/{name}.csv"
        extra = _EXTRA.get(name, {})
        yield from _settings("analyze", name, (path,), ANALYZE)
        yield from _settings("analyze", name, (path,), extra)
        yield from _texts("analyze", name, (path,))
        both = (path, "--models", "a,b")
        yield from _settings("compare", name, both, COMPARE)
        yield from _settings("compare", name, both, {**extra, **_COMPARE_EXTRA.get(name, {})})
        yield from _texts("compare", name, both)
        yield Case(f"compare/{name}/html", ("compare", *both, "--questions", "3", "--html", "out/page.html", "-q"))
    sides = ("tables/side_a.csv", "tables/side_b.csv")
    others = ("tables/other_a.csv", "tables/other_b.csv")
    yield from _settings("compare", "sides", sides, COMPARE)
    yield from _settings("compare", "others", others, COMPARE)
    yield from _settings("compare", "clash", ("tables/plain.csv",), _CLASHES)
    repeats = ("tables/repeats",)
    for command, more in (("analyze", ()), ("compare", ("tables/side_b.csv",)), ("arena", ("tables/side_b.csv",))):
        yield from _settings(command, "repeats", (*repeats, *more), {"apart": (), "joined": ("--as-repeats",)})
        joined = (*repeats, *more, "--as-repeats", "--repeats-are", "runs")
        yield Case(f"{command}/repeats/runs", (command, *joined, *JSON))
    baseline = ("tables/many.csv", "--against", "tables/side_a.csv")
    yield Case("compare/many/baseline", ("compare", *baseline, *JSON))
    yield Case("compare/many/too-many", ("compare", "tables/many.csv", *JSON))
    models = ("compare", "tables/many.csv", "--models", "c,f")
    yield Case("compare/many/models", (*models, *JSON))
    side = ("compare", "tables/side_a.csv", "tables/repeats/run0.csv", "tables/repeats/run1.csv")
    yield Case("compare/sides/baseline", (*side, "--against", "tables/side_b.csv", *JSON))
    yield Case("compare/sides/baseline-bh", (*side, "--against", "tables/side_b.csv", "--adjust", "bh"))
    for name in ("side_a.jsonl", "list.json", "arena_counts.csv"):
        yield from _settings("analyze", name, (f"tables/{name}",), {"default": (), "cr0": ("--se", "cr0")})


def _arenas() -> Iterator[Case]:
    for name in _ARENA_TABLES:
        path = f"tables/{name}.csv"
        groups = {"groups": _EXTRA["grouped"]["groups"]} if name == "grouped" else {}
        crossed = {"two-ways": _EXTRA["crossed"]["two-ways"]} if name == "crossed" else {}
        yield from _settings("arena", name, (path,), ARENA)
        yield from _settings("arena", name, (path,), {**groups, **crossed})
        yield from _texts("arena", name, (path,))
    many = ("arena", "tables/many.csv")
    yield Case("arena/many/baseline", (*many, "--against", "b", *JSON))
    yield Case("arena/many/baseline-absent", (*many, "--against", "z", *JSON))
    yield Case("arena/many/html", (*many, "--html", "out/pages", "-q"))
    yield Case("arena/many/figures", (*many, "--figures", "out/figures", "-q"))
    yield Case("arena/many/jobs", (*many, "--jobs", "1", "--task", "hard", *JSON))
    yield Case("arena/many/tables", (*many, "--tables", "out/tables", "-q"))
    yield Case("arena/many/profile", (*many, "--write-profile", "out/profile.json", "-q"))
    yield Case("arena/one", ("arena", "tables/side_a.csv", *JSON))
    bad = ("arena", "tables/side_a.csv", "tables/damaged/words.csv", "tables/side_b.csv")
    yield Case("arena/left-out", (*bad, *JSON))
    yield Case("arena/strict", (*bad, "--strict", *JSON))
    yield Case("arena/tasks57/groups", ("arena", "tables/tasks57.csv", "--group", "subjects=subject_*", *JSON))


def _harnesses(inputs: Path) -> Iterator[Case]:
    logs = sorted(str(path.relative_to(inputs)) for path in (inputs / "demo/inspect").glob("*.eval"))
    pairs = {
        "demo-lm-eval": ("demo/lm-eval/sim-a", "demo/lm-eval/sim-b"),
        "demo-inspect": tuple(logs[:2]),
        "live-lm-eval": ("live/lm-eval/one", "live/lm-eval/two"),
        "across": ("demo/lm-eval/sim-c", logs[0]),
        "asdiv": ("data/lm_eval/asdiv", "data/lm_eval/asdiv_cot"),
        "cruxeval": ("tables/cruxeval_in.csv", "tables/cruxeval_out.csv"),
        "gpqa": ("data/tables/gpqa_diamond_scores.csv",),
        "live-inspect": ("live/inspect",),
    }
    for name, runs in pairs.items():
        yield from _settings("compare", name, runs, COMPARE)
        yield from _texts("compare", name, runs)
        yield Case(f"compare/{name}/html", ("compare", *runs, "--questions", "5", "--html", "out/page.html"))
    single = {
        **{name: runs[:1] for name, runs in pairs.items()},
        "demo-all": ("demo/lm-eval",),
        "truthfulqa": ("data/lm_eval/truthfulqa_gen",),
        "masakhaner": ("data/lm_eval/masakhaner",),
        "mmlu-group": ("data/lm_eval/mmlu_group_0.4.3",),
        "groups": ("data/lm_eval/groups_0.4.8",),
        "mmlu": ("data/inspect/mmlu_gpt-4_285.eval",),
        "matharena": ("tables/matharena.csv",),
        **{f"version-{path.name}": (str(path.relative_to(inputs)),) for path in _logs(inputs)},
    }
    for name, runs in single.items():
        yield from _settings("analyze", name, runs, ANALYZE)
        yield from _texts("analyze", name, runs)
    for name in ("matharena_aime_II.csv", "cruxeval_input_codellama-7b_T0.2.json"):
        yield Case(f"analyze/no-table-{name}", ("analyze", f"data/tables/{name}", *JSON))
    subjects = ("data/inspect/mmlu_gpt-4_285.eval",)
    for spec in ("subject", "metadata.subject", "auto", "{{subject}}", "nowhere"):
        yield Case(f"analyze/mmlu/cluster-{spec}", ("analyze", *subjects, "--cluster", spec, *JSON))
    for spec in ("template", "auto", "question", "nowhere"):
        yield Case(f"analyze/demo-lm-eval/cluster-{spec}", ("analyze", *pairs["asdiv"][:1], "--cluster", spec, *JSON))


def _harness_arenas() -> Iterator[Case]:
    folders = {
        "demo": (("demo/lm-eval",), ARENA),
        "both": (("demo/lm-eval", "demo/inspect"), {"default": ()}),
        "live": (("live/lm-eval",), ARENA),
        "gpqa": (("data/tables/gpqa_diamond_scores.csv",), {"default": ()}),
        "matharena": (("tables/matharena.csv",), {"default": (), "wild": ("--test", "wild")}),
    }
    for name, (paths, settings) in folders.items():
        yield from _settings("arena", name, paths, settings)
        yield from _texts("arena", name, paths)
    yield Case("arena/demo/html", ("arena", "demo/lm-eval", "--html", "out/pages", "-q"))


def _logs(inputs: Path) -> list[Path]:
    return sorted((inputs / "data/inspect/versions").iterdir())


def _gates() -> Iterator[Case]:
    side, old, repeats = "tables/side_a.csv", ("--against", "tables/side_b.csv"), ("run0", "run1")
    yield from _settings("gate", "sides", (side, *old), GATE)
    for form in TEXTS:
        yield Case(f"gate/sides/as-{form}", ("gate", side, *old, "--format", form))
    several = tuple(word for name in repeats for word in ("--against", f"tables/repeats/{name}.csv"))
    yield from _settings("gate", "several", (side, *several), {"default": (), "no-loss": GATE["no-loss"]})
    floors = {"floor": (), "measured": ("--n", "200"), "same": ("--answers-b", "4"), "no-loss": GATE["no-loss"]}
    yield from _settings("gate", "floor", (side, "--floor", "0.5"), floors)
    yield Case("gate/each", ("gate", side, *old, "--each", *JSON))
    yield Case("gate/itself", ("gate", side, "--against", side, *JSON))


def _plans() -> Iterator[Case]:
    def plan(name: str, *arguments: str, forms: Arguments = ("json", "table")) -> Iterator[Case]:
        for form in forms:
            yield Case(f"plan/{name}/as-{form}", ("plan", *arguments, "--format", form))

    for k in (1, 5):
        some = ("--accuracy", "0.7", "--repeats", str(k))
        yield from plan(f"accuracy-effect-{k}", "--effect", "0.03", *some)
        yield from plan(f"accuracy-n-{k}", "--n", "500", *some)
        yield from plan(f"accuracy-both-{k}", "--n", "500", "--effect", "0.03", *some)
        yield from plan(f"omega-{k}", "--omega2", "0.1", "--sigma2", "0.1", "--effect", "0.02", "--repeats", str(k))
    yield from plan("omega-two", "--omega2", "0.1", "--sigma2", "0.1,0.05", "--effect", "0.02", forms=TEXTS)
    yield from plan("omega-deff", "--omega2", "0.1", "--sigma2", "0.1", "--n", "300", "--design-effect", "2.5")
    yield from plan("omega-size", "--omega2", "0.1", "--sigma2", "0.1", "--n", "300", "--cluster-size", "5")
    money = ("--costs", "question=2,answer=0.1")
    yield from plan("money", "--omega2", "0.1", "--sigma2", "0.2", "--effect", "0.02", *money)
    runs = {
        "plain": ("tables/plain.csv",),
        "side": ("tables/side_a.csv",),
        "sides": ("tables/side_a.csv", "tables/side_b.csv"),
        "clustered": ("tables/clustered.csv",),
        "zero": ("tables/zero.csv",),
        "k1": ("tables/k1.csv",),
        "tiny": ("tables/tiny.csv",),
        "demo": ("demo/lm-eval/sim-a", "demo/lm-eval/sim-b"),
        "demo-one": ("demo/lm-eval/sim-a",),
        "grouped": ("tables/grouped.csv",),
    }
    for name, pilot in runs.items():
        source = ("--from", *pilot)
        for goal in (
            ("--effect", "0.05"),
            ("--n", "400"),
            ("--effect", "0.05", "--power", "0.9"),
        ):
            yield from plan(f"{name}{''.join(goal)}", *source, *goal, forms=("json",))
        yield from plan(f"{name}-text", *source, "--effect", "0.05", forms=("table", "markdown"))
        yield from plan(f"{name}-like", *source, "--two-like-this", "--effect", "0.05", forms=("json",))
        yield from plan(f"{name}-k", *source, "--repeats", "4", "--n", "200", "--level", "0.99", forms=("json",))
    yield from plan("task", "--from", "tables/grouped.csv", "--task", "alone", "--effect", "0.1")
    yield from plan("clusters", "--from", "tables/crossed.csv", "--cluster", "template", "--effect", "0.1")
    yield from plan("range", "--from", "tables/percent.csv", "--range", "0,100", "--effect", "3")
    yield from plan("scale", "--from", "tables/side_a.csv", "--effect", "5")
    yield Case("plan/plot", ("plan", "--effect", "0.03", "--accuracy", "0.7", "--format", "svg", "-o", "out/curve.svg"))
    profile = ("--profile", "profile.json")
    for task in ("easy", "hard"):
        yield from plan(f"profile-{task}", *profile, "--task", task, "--n", "500")
        bare = ("compare", "0.74", "0.66", *profile, "--task", task)
        yield from _settings("compare", f"bare-{task}", bare[1:], {"default": (), "margin": ("--margin", "0.1")})
        yield Case(f"compare/bare-{task}/text", bare)
    yield from plan("profile-which", *profile, "--n", "500")
    yield from plan("profile-scale", *profile, "--task", "easy", "--effect", "3")
    yield from plan("nothing")
    yield from plan("all", "--effect", "0.03", "--n", "100", "--power", "0.8", "--accuracy", "0.7")
    yield from plan("no-noise", "--effect", "0.03")
    yield from plan("power", "--effect", "0.03", "--power", "1.2", "--accuracy", "0.7")
    yield from plan("accuracy", "--effect", "0.03", "--accuracy", "1.2")
    yield from plan("stray", "tables/side_a.csv", "--effect", "0.03")
    yield from plan("stray-range", "--range", "0,1", "--effect", "0.03", "--accuracy", "0.5")
    yield from plan("sigma", "--omega2", "0.1", "--sigma2", "much", "--effect", "0.02")
    yield from plan("two-sources", *profile, "--from", "tables/side_a.csv", "--effect", "0.02")


def _factors() -> Iterator[Case]:
    table = ("factors", "tables/factors.csv")
    for name, factors in {
        "prompt": ("prompt=prompt",),
        "prompt-judge": ("prompt=prompt", "judge=judge"),
        "three": ("prompt=prompt", "judge=judge", "seed=rep"),
        "absent": ("prompt=nowhere",),
        "badly": ("prompt",),
    }.items():
        given = tuple(word for item in factors for word in ("--factor", item))
        columns = ("--columns", "question=question,score=score")
        for form in ("json", *TEXTS):
            yield Case(f"factors/{name}/as-{form}", (*table, *given, *columns, "--format", form))
    yield Case("factors/run", ("factors", "tables/repeats", "--factor", "run=run", *JSON))
    yield Case("factors/model", ("factors", "tables/many.csv", "--factor", "model=model", "--factor", "t=task", *JSON))
    yield Case("factors/models", ("factors", "demo/lm-eval", "--factor", "model=model", *JSON))
    yield Case("factors/joined", ("factors", "tables/repeats", "--factor", "run=run", "--as-repeats"))


def _exports(inputs: Path) -> Iterator[Case]:
    runs = {
        "demo-lm-eval": "demo/lm-eval/sim-a",
        "asdiv": "data/lm_eval/asdiv",
        "truthfulqa": "data/lm_eval/truthfulqa_gen",
        "masakhaner": "data/lm_eval/masakhaner",
        "mmlu-group": "data/lm_eval/mmlu_group_0.4.3",
        "live-lm-eval": "live/lm-eval/one",
        "live-plain": "live/lm-eval/plain",
        "live-inspect": "live/inspect",
        "live-inspect-plain": "live/inspect-plain",
        "mmlu": "data/inspect/mmlu_gpt-4_285.eval",
        **{f"version-{path.name}": str(path.relative_to(inputs)) for path in _logs(inputs)},
    }
    for name, run in runs.items():
        yield Case(f"export/{name}/default", ("export", run, "-o", "out/run"))
    for setting in ("cr0", "cr3", "level80", "runs", "fixed", "zero", "uncl"):
        for name in ("live-plain", "live-inspect-plain"):
            yield Case(f"export/{name}/{setting}", ("export", runs[name], "-o", "out/run", *_COMPUTING[setting], "-q"))
    again = ("live/lm-eval/plain",)
    yield Case("export/live-plain/cluster", ("export", *again, "-o", "out/run", "--cluster", "template"))
    yield Case("export/live-plain/in-place", ("export", "out/plain", "--in-place"), copied=again)
    yield Case("export/table", ("export", "tables/plain.csv", "-o", "out/run"))
    yield Case("export/nowhere", ("export", *again))
    yield Case("export/both", ("export", *again, "-o", "out/run", "--in-place"))
    yield Case("export/task", ("export", *again, "-o", "out/run", "--task", "gen"))
    yield Case("export/joined", ("export", *again, "-o", "out/run", "--as-repeats"))


def _others() -> Iterator[Case]:
    counts = {"plain": ("74/100", "66/100"), "few": ("3/5", "1/5"), "none": ("0/10", "10/10"), "over": ("7/5", "1/5")}
    for name, pair in counts.items():
        settings = {
            "default": (),
            "margin": ("--margin", "0.1"),
            "level80": ("--level", "0.8"),
            "sign": ("--test", "sign"),
            "cr3": ("--se", "cr3"),
            "models": ("--models", "new,old"),
        }
        yield from _settings("compare", f"counts-{name}", pair, settings)
        yield from _texts("compare", f"counts-{name}", pair)
    yield Case("compare/counts-three", ("compare", "1/2", "1/3", "1/4"))
    for name in ("empty", "header", "words", "infinite", "huge", "columns", "twice", "short"):
        yield Case(f"analyze/damaged-{name}", ("analyze", f"tables/damaged/{name}.csv", *JSON))
    for name in ("broken.jsonl", "log.eval", "results_2026-01-01T00-00-00.000000.json", "nothing.csv"):
        yield Case(f"analyze/damaged-{name}", ("analyze", f"tables/damaged/{name}", *JSON))
    yield Case("analyze/nothing", ("analyze", "nowhere", *JSON))
    yield Case("analyze/no-run", ("analyze",))
    yield Case("compare/one", ("compare", "tables/side_a.csv"))
    yield Case("compare/unlike", ("compare", "tables/side_a.csv", "tables/tasks57.csv", "--models", "a,b"))
    yield Case("analyze/several", ("analyze", "tables/side_a.csv", "tables/plain.csv", "tables/grouped.csv"))
    yield Case("analyze/some", ("analyze", "tables/side_a.csv", "tables/grouped.csv", "--task", "alone", *JSON))
    yield Case("analyze/file", ("analyze", "tables/plain.csv", "-o", "out/plain.json", *JSON))
    yield Case("compare/file", ("compare", "tables/plain.csv", "--models", "a,b", "-o", "out/plain.txt"))
    yield Case("list", ("list",))
    yield Case("version", ("--version",))
    yield Case("help", ("--help",))
    yield Case("unknown", ("no-such-command",))
    for command in ("analyze", "compare", "arena", "factors", "plan", "export", "demo", "list"):
        yield Case(f"help/{command}", (command, "--help"))
