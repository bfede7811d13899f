"""Registers of the ways to compute: variance estimators, intervals and tests.

A choice is one object. It has the name that users type, the name that results print, a line for the reference page,
the calculations that it may stand beside, and the functions that compute it. The values of options, the refusals, the
printed names and `docs/choices.md` are made from the registers. Packages add choices by `register`, and name
the module that does so under the entry point group `harness_noise.choices`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar, Generic, TypeVar

from .errors import InputError, some_of

Function = str | Callable[..., Any]
"""A function, or `module:function`, which is imported when it is called for the first time."""


@cache
def resolved(function: Function) -> Callable[..., Any]:
    """Return a function, imported first if it is given as text "module:name"."""
    if not isinstance(function, str):
        return function
    module, name = function.split(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """One registered value of a setting, with the functions that compute it."""

    name: str
    """The value as users type it."""
    title: str = ""
    """The name in tables and sentences, "" to use `name`."""
    words: str
    """One sentence for the reference page."""
    domain_words: str = ""
    """The data that it is for, if it is not for all."""
    beside: str = ""
    """The calculations and designs that obey it, by their names in `settings`. "": only results have this name."""

    works: str = ""
    """Keys of the works that describe it, as in docs/sources.md."""

    needs: ClassVar[dict[str, str]] = {}
    """Calculation → the function without which it cannot obey a choice."""

    @property
    def consumers(self) -> frozenset[str]:
        """Names of the calculations, such as `compare`, that support this choice.

        What `analyze` obeys `export` writes.
        """
        names = frozenset(self.beside.split())
        return names | {"export"} if "analyze" in names else names

    def call(self, function: str, *arguments: Any) -> Any:
        """Call the function in a choice's field, imported if needed, and return its result. Refuse if it has none.

        Raises
        ------
        NotImplementedError
            It has no such function, because it does not stand beside the calculation that calls it.
        """
        found = getattr(self, function)
        if found is None:
            raise NotImplementedError(f"{self.name!r} is not computed here: it has no `{function}`")
        return resolved(found)(*arguments)

    def refusal(self, of: Any) -> str:
        """Return why this interval, test or estimator does not suit these data, "" if it does."""
        domain = getattr(self, "domain", None)
        return "" if domain is None else str(resolved(domain)(of))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator(Registered):
    """A variance estimator V = g(G) Σ_c [Σ_i c(h) e_i]², with G clusters c of leverage h."""

    beside: str = (
        "published estimate estimate_difference analyze compare all_pairs corpus "
        "corpus_difference unpaired wild runs crossed"
    )
    leverage: Function
    """Leverages of any shape → the factors c(h) of the residuals."""
    small_sample: Function = "harness_noise.stats.cluster_variance:no_adjustment"
    """Numbers of clusters → the factors g(G)."""
    by_effects: bool = False
    """With crossed clusters, take what they share from the residuals on the effects of both ways."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalMethod(Registered):
    """A confidence interval of a mean, of a difference, or of both."""

    needs: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("estimate", "analyze", "all_pairs", "corpus"), "of_mean"),
        **dict.fromkeys(("estimate_difference", "compare", "corpus_difference"), "of_difference"),
    }
    of_mean: Function | None = None
    """`stats.intervals.OneMean` → its `Limits`. None: it cannot be computed from these answers."""
    on_share: bool = False
    """Needs a range, takes the mean's share of it, and gives limits in [0, 1]."""
    within_range: bool = True
    """Cut off where the range of the metric ends."""
    domain: Function | None = None
    """`OneMean` → why the interval is not for it, "" if it is."""
    tail: Function | None = None
    """`OneMean` → how far a long tail moves a limit, in standard errors."""
    tail_moves: bool = True
    """True to move the limit by `tail`, False to only report a long tail."""
    by_t: bool = False
    """Its width comes from a quantile of Student's t, so that tables show the degrees of freedom."""
    of_difference: Function | None = None
    """`analysis.drawn.OneDifference` and the `decision.Test` → that test with these limits."""
    test: str = ""
    """The test whose p goes with its limits, used unless another test is named. "" for t."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceTest(Registered):
    """A test of a difference."""

    needs: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("estimate_difference", "compare"), "of_difference"),
        "all_pairs": "of_pairs",
        "corpus_difference": "of_corpus",
    }
    of_difference: Function | None = None
    """`analysis.drawn.OneDifference` → its `decision.Test`."""
    of_pairs: Function | None = None
    """Differences of all pairs, their columns, their table and the settings → their `decision.Test`.

    A name alone is that of a function of the extra that compares all pairs of many runs.
    """
    of_corpus: Function | None = None
    """Noise of a corpus metric, its sides and the settings → its `decision.Test`.

    A name alone is that of a function of the extra that has such metrics.
    """
    domain: Function | None = None
    """`analysis.sample.Sample` → why the test is not for it, "" if it is."""
    interval: str = "t"
    """Its interval, unless another is asked for."""
    has_limits: bool = True
    """It can be held against a margin."""
    by_cluster: bool = False
    """It resamples whole clusters, which its printed name says."""


C = TypeVar("C", bound=Registered)


class Register(Generic[C]):
    """The choices of one setting, by name.

    Args:
        setting: the name of the field of `Settings`.
        kind: the class of its choices.
        default: a value that is no choice but a rule which chooses.
    """

    def __init__(self, setting: str, kind: type[C], default: str = "") -> None:
        self.setting, self.kind, self.default = setting, kind, default
        self._items: dict[str, C] = {}
        self._known: Collection[str] = ()

    def add(self, item: C) -> C:
        """Add a choice to those known and return it. Refuse a name that is taken, or a calculation it cannot do.

        Raises
        ------
        ValueError
            Its name is taken, it names a calculation that does not exist, or it lacks a function that one needs.
        """
        if item.name in self._items or item.name == self.default:
            raise ValueError(f"{self.setting} {item.name!r} is registered already")
        self._check(item)
        self._items[item.name] = item
        return item

    def _check(self, item: C) -> None:
        unknown = set(item.beside.split()) - set(self._known) if self._known else ()
        if unknown:
            raise ValueError(f"{self.setting} {item.name!r} is for {', '.join(sorted(unknown))}: no such thing")
        for consumer in item.beside.split():
            function = item.needs.get(consumer)
            if function and getattr(item, function) is None:
                raise ValueError(f"{self.setting} {item.name!r} is for {consumer} and has no `{function}`")

    def check_consumers(self, known: Collection[str]) -> None:
        """Raise an error if any choice, now or added later, names a calculation that is not in `known`."""
        self._known = known
        for item in self._items.values():
            self._check(item)

    def check_names(self, names: Collection[str], where: str) -> None:
        """Raise an error if any of these names is not a registered choice.

        Raises
        ------
        ValueError
            One is not; says what names it.
        """
        if unknown := set(names) - {self.default, *self._items}:
            raise ValueError(f"{where} names {self.setting} {', '.join(sorted(unknown))}, which is not registered")

    def __getitem__(self, name: str) -> C:
        """Return the choice with this name, importing other packages' if needed. NotImplementedError if there is none.

        Raises
        ------
        NotImplementedError
            There is no such choice; it is never computed as another one.
        """
        if name not in self._items:
            load_packages()
        if name not in self._items:
            raise NotImplementedError(f"{self.setting} {name!r} is not computed here, which knows {', '.join(self)}")
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._items:
            load_packages()
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def named(self, consumer: str = "") -> tuple[str, ...]:
        """Return the names registered so far, without `default`, that users may type (for one calculation)."""
        return tuple(x.name for x in self._items.values() if x.beside and (not consumer or consumer in x.consumers))

    def check(self, value: object) -> None:
        """Raise an error if a setting's value is not one that users may type.

        Raises
        ------
        InputError
            Names the values that there are.
        """
        item = self._items.get(str(value))
        if item is None and value != self.default and value in self:  # of a package that is loaded now
            item = self._items[str(value)]
        if value == self.default or (item is not None and item.beside):
            return
        names = [name for name in (self.default, *self.named()) if name]
        raise InputError(f"{self.setting} {value!r} is not one of {some_of(names, 20)}")

    def title(self, name: str) -> str:
        """Return a choice's name for display, or `name` itself if it is unknown."""
        item = self._items.get(name)
        return name if item is None else item.title or name


ESTIMATORS = Register("se", Estimator)
INTERVALS = Register("interval", IntervalMethod, "auto")
TESTS = Register("test", DifferenceTest)
REGISTERS: dict[str, Register[Any]] = {register.setting: register for register in (ESTIMATORS, INTERVALS, TESTS)}
GROUP = "harness_noise.choices"
"""Entry points of packages that register choices, each a module."""


def register(item: C) -> C:
    """Add an estimator, interval or test to the known ones in this process."""
    (found,) = (each for each in REGISTERS.values() if isinstance(item, each.kind))
    return found.add(item)  # type: ignore[no-any-return]


@cache
def load_packages() -> None:
    """Import once the packages that register further estimators, intervals or tests, and check their partners."""
    for entry in entry_points(group=GROUP):
        entry.load()
    check_partners()


def check_partners() -> None:
    """Raise an error if an interval names a test, or a test an interval, that is not registered."""
    for interval in INTERVALS._items.values():
        TESTS.check_names([interval.test] if interval.test else [], f"interval {interval.name!r}")
    for test in TESTS._items.values():
        INTERVALS.check_names([test.interval], f"test {test.name!r}")


def has_limits(test: str) -> bool:
    """Return True if a test gives confidence limits (or is unknown), not only a p-value as sign tests do.

    A margin is compared with the limits. Sign and permutation tests have only p."""
    return test not in set(TESTS) or TESTS[test].has_limits


_STATS = "harness_noise.stats"
_ANALYSIS = "harness_noise.analysis"
_MEANS = "estimate analyze"
_DESIGNS = "all_pairs unpaired wild runs crossed corpus"

CR0 = register(
    Estimator(
        name="cr0",
        works="Miller",
        title="CR0",
        leverage=f"{_STATS}.cluster_variance:no_adjustment",
        words="The sum of the squared cluster sums over n², as the papers have it. Too small with few clusters.",
    )
)
CR1 = register(
    Estimator(
        name="cr1",
        title="CR1",
        leverage=f"{_STATS}.cluster_variance:no_adjustment",
        small_sample=f"{_STATS}.cluster_variance:cr1_factor",
        words="CR0 times G/(G − 1), for G clusters.",
    )
)
CR2 = register(
    Estimator(
        name="cr2",
        works="Bell Pustejovsky",
        title="CR2",
        leverage=f"{_STATS}.cluster_variance:cr2_factor",
        by_effects=True,
        words="Bell and McCaffrey's: each residual is divided by the root of 1 less its leverage. Unbiased if answers "
        "to different questions are independent and vary alike.",
    )
)
CR3 = register(
    Estimator(
        name="cr3",
        works="Bell",
        title="CR3",
        leverage=f"{_STATS}.cluster_variance:cr3_factor",
        by_effects=True,
        words="The jackknife over clusters, for very unequal clusters. Too large rather than too small.",
    )
)

T = register(
    IntervalMethod(
        name="t",
        of_mean=f"{_STATS}.intervals:t_of_mean",
        within_range=False,
        tail=f"{_STATS}.intervals:tail_shift_of_t",
        by_t=True,
        of_difference=f"{_ANALYSIS}.drawn:limits_of_t",
        beside=f"{_MEANS} {_DESIGNS} estimate_difference compare corpus_difference fixed",
        words="Estimate ± t · SE, with Satterthwaite's degrees of freedom.",
    )
)
WILSON = register(
    IntervalMethod(
        name="wilson",
        works="Wilson",
        title="Wilson",
        on_share=True,
        of_mean=f"{_STATS}.intervals:wilson_of_mean",
        tail=f"{_STATS}.intervals:tail_shift_of_wilson",
        by_t=True,
        domain_words="a metric with a range",
        beside=f"{_MEANS} {_DESIGNS} fixed",
        words="Wilson's score interval at the effective number of answers, with a quantile of t.",
    )
)
CLOPPER_PEARSON = register(
    IntervalMethod(
        name="clopper-pearson",
        works="Clopper",
        title="Clopper–Pearson",
        on_share=True,
        of_mean=f"{_STATS}.intervals:clopper_pearson_of_mean",
        domain=f"{_STATS}.intervals:why_not_binomial",
        domain_words="0/1 scores, one answer per question, no clusters",
        beside=f"{_MEANS} all_pairs unpaired wild runs crossed",
        words="The exact binomial interval.",
    )
)
KORN_GRAUBARD = register(
    IntervalMethod(
        name="korn-graubard",
        works="Korn",
        title="Korn–Graubard",
        on_share=True,
        by_t=True,
        domain_words="a metric with a range",
        of_mean=f"{_STATS}.intervals:korn_graubard_of_mean",
        beside=f"{_MEANS} {_DESIGNS}",
        words="Clopper–Pearson at the effective number of answers: the cautious choice with few failures.",
    )
)
BOOTSTRAP = register(
    IntervalMethod(
        name="bootstrap",
        works="Efron",
        of_mean=f"{_STATS}.resampling:bootstrap_of_mean",
        by_t=True,
        of_difference=f"{_ANALYSIS}.drawn:limits_of_bootstrap",
        test="bootstrap",
        beside=f"{_MEANS} corpus unpaired estimate_difference compare corpus_difference",
        words="BCa limits of the cluster bootstrap, widened as those of t. Percentiles for a metric over all "
        "questions at once.",
    )
)
BOOTSTRAP_T = register(
    IntervalMethod(
        name="bootstrap-t",
        works="Efron",
        of_mean=f"{_STATS}.resampling:studentised_of_mean",
        tail=f"{_STATS}.intervals:tail_shift_of_t",
        tail_moves=False,
        of_difference=f"{_ANALYSIS}.drawn:limits_of_bootstrap_t",
        test="bootstrap-t",
        domain_words="6 clusters or more; of a difference a measure such as cost",
        beside=f"{_MEANS} compare",
        words="The studentised cluster bootstrap, for long tails.",
    )
)
WILD_LIMITS = register(
    IntervalMethod(name="wild", title="wild bootstrap", words="All that `test='wild'` does not reject.")
)
BONETT_PRICE = register(
    IntervalMethod(
        name="bonett-price",
        works="Bonett",
        title="Bonett–Price",
        words="Adjusted Wald, for a paired difference that does not vary.",
    )
)
AGRESTI_CAFFO = register(
    IntervalMethod(
        name="agresti-caffo",
        works="Agresti",
        title="Agresti–Caffo",
        words="Adjusted Wald, for an unpaired difference that does not vary.",
    )
)

T_TEST = register(
    DifferenceTest(
        name="t",
        of_difference=f"{_ANALYSIS}.drawn:test_of_t",
        of_pairs="pairs_by_t",
        of_corpus="by_t",
        beside="estimate_difference compare wild all_pairs unpaired corpus_difference",
        words="Student's t of the paired difference, with Satterthwaite's degrees of freedom.",
    )
)
SIGN = register(
    DifferenceTest(
        name="sign",
        title="sign test",
        of_difference=f"{_ANALYSIS}.drawn:test_of_sign",
        of_pairs="pairs_by_sign",
        of_corpus="by_t",
        has_limits=False,
        domain=f"{_ANALYSIS}.drawn:why_no_signs",
        domain_words="scores that each question has (no ratio of sums)",
        beside="estimate_difference compare all_pairs corpus_difference",
        words="The exact sign test (McNemar) of the questions, or clusters, on which the runs differ.",
    )
)
PERMUTATION = register(
    DifferenceTest(
        name="permutation",
        works="Good",
        of_difference=f"{_ANALYSIS}.drawn:test_of_permutation",
        of_corpus="by_permutation",
        has_limits=False,
        by_cluster=True,
        beside="estimate_difference compare corpus_difference",
        words="Random signs of whole clusters.",
    )
)
BOOTSTRAP_TEST = register(
    DifferenceTest(
        name="bootstrap",
        works="Efron",
        of_difference=f"{_ANALYSIS}.drawn:test_of_bootstrap",
        of_corpus="by_resampling",
        interval="bootstrap",
        by_cluster=True,
        beside="estimate_difference compare unpaired corpus_difference",
        words="The cluster bootstrap, with its own interval.",
    )
)
WILD = register(
    DifferenceTest(
        name="wild",
        works="Cameron2008 MacKinnon",
        title="wild bootstrap",
        of_difference=f"{_ANALYSIS}.drawn:test_of_wild",
        of_pairs="pairs_by_wild",
        interval="wild",
        by_cluster=True,
        beside="estimate_difference compare all_pairs wild",
        words="The wild cluster bootstrap under the null, for few or very unequal clusters. Its interval is by "
        "inversion.",
    )
)
register(
    DifferenceTest(
        name="bootstrap-t",
        works="Efron",
        of_difference=f"{_ANALYSIS}.drawn:test_of_bootstrap_t",
        interval="bootstrap-t",
        by_cluster=True,
        words="The studentised cluster bootstrap, next to its interval.",
    )
)
FISHER = register(
    DifferenceTest(
        name="fisher", works="Fisher", title="Fisher's exact", words="Of two counts, as of 74/100 and 72/100."
    )
)
REFERENCE = register(
    DifferenceTest(name="reference", title="t", words="Student's t, with the noise that a benchmark's profile says.")
)
