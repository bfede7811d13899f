"""Boundaries for looks before all questions are answered, intervals after stopping, confidence sequences.

Group-sequential tests spend α over a few looks; their boundaries come from the recursive integration of the
statistic's density. The test statistic is a z; a look's t statistic becomes one through its p-value. What a look may
spend and how its z correlates with those before are two things: the first follows a planned share of the information,
the second the ratio of the information that is there.

Sources, cited at the lines that use them:
  [Armitage]      Armitage, McPherson & Rowe (1969), J. Royal Statistical Society A 132
  [Lan]           Lan & DeMets (1983), Biometrika 70
  [Hwang]         Hwang, Shih & DeCani (1990), Statistics in Medicine 9
  [Spiegelhalter] Spiegelhalter, Freedman & Blackburn (1986), Controlled Clinical Trials 7
  [Jennison]      Jennison & Turnbull (2000), Group Sequential Methods, ch. 5, 7, 8, 19
  [Robbins]       Robbins (1970), Annals of Mathematical Statistics 41
  [Howard]        Howard, Ramdas, McAuliffe & Sekhon (2021), Annals of Statistics 49
  [Waudby-Smith]  Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas (2024), Annals of Statistics 52
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy import special

from ..arrays import FloatArray
from ..errors import of_choice

Looks = int | Literal["anytime"]
Spending = Literal["hsd", "obrien-fleming", "pocock"]
GAMMA = -4.0
"""γ of the Hwang–Shih–DeCani family: between Pocock's (1) and O'Brien & Fleming's (about −10)."""

LOOKS = 20
"""Looks of a run unless the user names another number."""
MOST_LOOKS = 50
"""The most looks of a group-sequential plan. Beyond, a confidence sequence is the better rule."""
_GRID = 16
"""Density of the integration grid, r of [Jennison, §19.2]: 6r − 1 points and the midpoints between them."""
_RTOL = 4 * math.ulp(1.0)
"""The relative precision of roots, scipy's minimum."""
_FAR = 40.0
"""A z beyond every boundary that a positive float of α can ask for."""
MOST_Z = 37.0
"""The largest z whose p-value is a float."""


def find_root(f: Callable[[float], float], low: float, high: float, *, xtol: float, rtol: float = _RTOL) -> float:
    """Return the root of a function that changes sign between `low` and `high` (Brent's method)."""
    from scipy.optimize import brentq  # takes long to import, and a run that asks everything has no boundaries

    return float(brentq(f, low, high, xtol=xtol, rtol=rtol))


def error_spent(fraction: float, error: float, spending: Spending = "hsd", gamma: float = GAMMA) -> float:
    """Return the part of a one-sided error that may be spent by this fraction of the data [Lan], by "hsd" by default.

    Hwang–Shih–DeCani: error (1 − e^{−γt})/(1 − e^{−γ}) [Hwang]; O'Brien–Fleming type: 2 (1 − Φ(z_{error/2}/√t)); Pocock
    type: error log(1 + (e − 1) t).
    """
    t = min(max(fraction, 0.0), 1.0)
    if t == 0:
        return 0.0
    shapes: dict[str, Callable[[], float]] = {
        "hsd": lambda: error * (t if gamma == 0 else math.expm1(-gamma * t) / math.expm1(-gamma)),
        "obrien-fleming": lambda: float(2 * special.ndtr(special.ndtri(error / 2) / math.sqrt(t))),
        "pocock": lambda: error * math.log1p((math.e - 1) * t),
    }
    return of_choice("spending", spending, shapes)()


def information(fraction: float, repeats: float = 1.0, prediction: float = 1.0, residual: float = 1.0) -> float:
    """Return the information on A − B after a fraction of the questions, in units of one answer to every question.

    1 / (1 − ρ(1 − h) + (N/m − 1)(g − ρ(1 − h))): after m of N questions with one answer each it is m/N, with a
    regression on what is known of all N 1/(1 + (N/m − 1) g); more answers lower the prediction part alone.

    Args:
        fraction: m/N.
        repeats: h, the mean of 1/k over the questions that were asked.
        prediction: ρ, the share of a question's variance, one answer each, that is A's prediction noise.
        residual: g, the variance of the regression's residuals over that of the differences; 1 without a regression.
    """
    fewer = prediction * (1 - repeats)
    return 1 / (1 - fewer + (1 / fraction - 1) * max(residual - fewer, 0.02))


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """The density of the z statistic at a look, over runs that no earlier look has stopped."""

    information: float
    z: FloatArray
    """Points of the grid."""
    mass: FloatArray
    """Simpson weight times density at each."""

    def crossing_probability(self, information: float, drift: float, b: float) -> float:
        """Return P(no look has stopped yet and z ≥ b at the next). `drift` is E z / √information."""
        step = information - self.information
        reach = self.z * math.sqrt(self.information) + drift * step - b * math.sqrt(information)
        return float(self.mass @ special.ndtr(reach / math.sqrt(step)))

    def next(self, information: float, drift: float, b: float, inner: float = 0.0) -> _State:
        """Return the distribution of z after the next interim look, for runs that go on as inner ≤ |z| < b."""
        step = information - self.information
        z, weight = _grid(drift * math.sqrt(information), -b, b)
        if inner > 0:
            sides = [_grid(drift * math.sqrt(information), *ends) for ends in ((-b, -inner), (inner, b))]
            z, weight = (np.concatenate(parts) for parts in zip(*sides, strict=True))
        ahead = z[:, None] * math.sqrt(information) - self.z * math.sqrt(self.information) - drift * step
        density = np.exp(-0.5 * (ahead / math.sqrt(step)) ** 2) @ self.mass
        return _State(information, z, weight * density * math.sqrt(information / step / (2 * math.pi)))

    def boundary(self, information: float, p: float) -> float:
        """Return the b, from 0 to 40, with P(no look has stopped yet and z ≥ b at the next) = p under the null."""
        target = max(p, 1e-300)
        if self.crossing_probability(information, 0.0, 0.0) <= target:
            return 0.0
        if self.crossing_probability(information, 0.0, _FAR) >= target:
            return _FAR
        reach = math.log(target)
        return find_root(
            lambda x: math.log(max(self.crossing_probability(information, 0.0, x), 1e-320)) - reach,
            0.0,
            _FAR,
            xtol=1e-12,
            rtol=1e-14,
        )


def _start() -> _State:
    """Return the distribution of z before the first look: no information, all probability at z = 0."""
    return _State(0.0, np.zeros(1), np.ones(1))


def _grid(centre: float, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Return (G,) points and Simpson weights between two limits, dense around `centre` [Jennison, §19.2]."""
    r, i = _GRID, np.arange(1, 6 * _GRID)
    x = np.where(i < r, -3 - 4 * np.log(r / i), -3 + 3 * (i - r) / (2 * r))
    x = centre + np.where(i > 5 * r, 3 + 4 * np.log(r / np.maximum(6 * r - i, 1)), x)
    x = np.unique(np.concatenate([[low], x[(x > low) & (x < high)], [high]]))
    points = np.empty(2 * len(x) - 1)
    points[::2], points[1::2] = x, (x[1:] + x[:-1]) / 2
    gaps = np.diff(x)
    weight = np.zeros(len(points))
    weight[1::2] = 4 * gaps / 6
    weight[:-1:2] += gaps / 6
    weight[2::2] += gaps / 6
    return points, weight


def critical_values(
    fractions: Sequence[float],
    alpha: float,
    spending: Spending = "hsd",
    gamma: float = GAMMA,
    info: Sequence[float] | None = None,
) -> tuple[float, ...]:
    """Return critical |z| at each look, α/2 per side [Lan; Armitage]. Refuse fractions that do not rise within (0, 1].

    Args:
        fractions: of the whole information, rising, in (0, 1].
        alpha: two-sided error of the whole procedure.
        spending: how much of it each look may spend.
        gamma: of Hwang, Shih & DeCani's family.
        info: rising information at the looks, on any scale, where `fractions` are what was planned.

    Raises:
        ValueError: fractions or information that do not rise, fractions outside (0, 1], or an α outside (0, 1).
    """
    planned = tuple(float(t) for t in fractions)
    there = planned if info is None else tuple(float(t) for t in info)
    rise = all(a < b for a, b in pairwise([0.0, *there])) and all(a <= b for a, b in pairwise([0.0, *planned]))
    if not planned or len(there) != len(planned) or not rise or planned[-1] > 1 + 1e-12 or not 0 < alpha < 1:
        raise ValueError(f"looks at {planned} with α = {alpha:g}: fractions must rise within (0, 1], α lie in (0, 1)")
    return _path(tuple(zip(there, planned, strict=True)), alpha, spending, gamma)[1]


@lru_cache(maxsize=4096)
def _path(
    looks: tuple[tuple[float, float], ...], alpha: float, spending: Spending, gamma: float
) -> tuple[_State, tuple[float, ...]]:
    """Return the distribution of z after looks at (information, fraction), and the critical |z| of each look."""
    if not looks:
        return _start(), ()
    state, bounds = _path(looks[:-1], alpha, spending, gamma)
    there, fraction = looks[-1]
    before = looks[-2][1] if len(looks) > 1 else 0.0
    b = state.boundary(
        there, error_spent(fraction, alpha / 2, spending, gamma) - error_spent(before, alpha / 2, spending, gamma)
    )
    return state.next(there, 0.0, b), (*bounds, b)


def predictive_power(z: float, fraction: float, critical: float, within: float | None = None) -> float:
    """Return the chance that complete data will be significant, or within ±`within`, given z at a look [Spiegelhalter].

    The z of all is normal with mean z/√t and variance (1 − t)/t.

    Args:
        z: of the look.
        fraction: t, the share of the information that is there.
        critical: |z| at which the last look decides.
        within: |z| below which it is equivalent; None: never.
    """
    mean, sd = z / math.sqrt(fraction), math.sqrt(max((1 - fraction) / fraction, 1e-12))
    out = special.ndtr((mean - critical) / sd) + special.ndtr((-mean - critical) / sd)
    if within is not None and within > 0:
        out += special.ndtr((within - mean) / sd) - special.ndtr((-within - mean) / sd)
    return min(1.0, float(out))


def futility_bounds(
    info: Sequence[float], fractions: Sequence[float], bounds: Sequence[float], drift: float, beta: float
) -> tuple[float, ...]:
    """Return the |z| at each interim look below which a run may stop as hopeless, for a planned effect [Lan; Jennison].

    Under the effect so much of `beta` is spent as Hwang–Shih–DeCani's family allows. The critical values stay as they
    are: to go on against the rule costs no error of type I.

    Args:
        info: information at the looks.
        fractions: of the whole.
        bounds: critical |z|.
        drift: E z/√information under the planned effect.
        beta: probability under it to stop for futility at any look.
    """
    state, before, out = _start(), 0.0, []
    for there, t, b in zip(info, fractions, bounds, strict=True):
        here = error_spent(t, beta)

        def inside(f: float, state: _State = state, there: float = there) -> float:
            return state.crossing_probability(there, drift, -f) - state.crossing_probability(there, drift, f)

        wanted = here - before
        f = b if inside(b) <= wanted else find_root(lambda x: inside(x) - wanted, 0.0, b, xtol=1e-9)  # noqa: B023
        out.append(f)
        if f >= b:
            return (*out, *bounds[len(out) :])
        state, before = state.next(there, drift, b, f), here
    return tuple(out)


def exits_above(fractions: Sequence[float], bounds: Sequence[float], drift: float = 0.0) -> FloatArray:
    """Return (L,) probabilities that z first crosses the upper boundary at interim look 1, …, L.

    Args:
        fractions: information at each look; z there has mean drift · √information.
        bounds: |z| at which each look stops.
        drift: per root of information.
    """
    state, out = _start(), []
    last = len(fractions) - 1
    for k, (t, b) in enumerate(zip(fractions, bounds, strict=True)):
        out.append(state.crossing_probability(t, drift, b))
        state = state.next(t, drift, b) if k < last else state
    return np.array(out)


def stagewise_shifts(
    z: float, fractions: Sequence[float], bounds: Sequence[float], level: float
) -> tuple[float, float, float]:
    """Return the distances below z of lower limit, median estimate and upper limit after an early stop, in SEs.

    Outcomes are ordered by the look that stopped, then by z: the stage-wise ordering. With one look the shifts
    are (z_{1−α/2}, 0, −z_{1−α/2}).

    Args:
        z: the statistic where it stopped, at the last of `fractions`.
        fractions: information at the looks that were taken, as shares of anything.
        bounds: critical |z| of those looks; the last is not used.
        level: coverage.

    Returns:
        z − θ for the lower limit, the estimate and the upper limit.
    """
    if z < 0:  # B − A has the same limits, to the last digit
        low, middle, high = stagewise_shifts(-z, fractions, bounds, level)
        return -high, -middle, -low
    z = min(z, MOST_Z)
    share = [float(t) / fractions[-1] for t in fractions]

    def above(theta: float) -> float:
        """Return the probability of an outcome at least as high as the observed one, if the difference is theta."""
        return float(exits_above(share, [*bounds[: len(share) - 1], z], theta).sum())

    def solve(target: float) -> float:
        low, high, step = z - 3, z + 3, 3.0
        while above(low) > target:
            low, step = low - step, 2 * step
        step = 3.0
        while above(high) < target:
            high, step = high + step, 2 * step
        return z - find_root(lambda theta: above(theta) - target, low, high, xtol=1e-7)

    tail = (1 - level) / 2
    return solve(tail), solve(0.5) if z else 0.0, solve(1 - tail)


def normal_z(t: float, df: float) -> float:
    """Return the z with the same p-value and sign as this t statistic, at most 37 in size."""
    p = float(special.ndtr(-abs(t)) if math.isinf(df) else special.stdtr(df, -abs(t)))
    z = MOST_Z if p < 1e-298 else -float(special.ndtri(p))
    return math.copysign(min(z, MOST_Z), t)


def student_t(z: float, df: float) -> float:
    """Return the float t with the same p-value as this float z (the inverse of `normal_z`). Linear beyond |z| = 6."""
    if math.isinf(df) or z == 0:
        return z
    inside = min(abs(z), 6.0)
    t = -float(special.stdtrit(df, float(special.ndtr(-inside))))
    return math.copysign(t * abs(z) / inside, z)


def mixture_tuning(alpha: float, when: float) -> float:
    """Return the tuning ρ that makes a confidence sequence narrowest after `when` observations [Waudby-Smith]."""
    rest = -2 * math.log(alpha)
    return math.sqrt((rest + math.log(rest + 1)) / when)


def mixture_critical(n: FloatArray | float, alpha: float, rho: float) -> FloatArray:
    """Return half-widths at each n, in SEs, of a confidence sequence that is valid at all n at once.

    √(2 (nρ² + 1)/(nρ²) · log(√(nρ² + 1)/α)): valid at all n at once [Robbins; Howard; Waudby-Smith].
    """
    x = np.asarray(n, dtype=np.float64) * rho**2
    return np.sqrt(2 * (x + 1) / x * np.log(np.sqrt(x + 1) / alpha))


@lru_cache(maxsize=1024)
def mixture_boundaries(fractions: tuple[float, ...], alpha: float, when: float) -> tuple[float, ...]:
    """Return critical |z| of a confidence sequence at looks at these fractions. A look at all data spends the rest.

    A look at all of the information spends what is left of α: the sequence must hold for ever, the looks at N questions
    end there.

    Args:
        fractions: of the whole information, rising, in (0, 1].
        alpha: two-sided error of the whole procedure.
        when: fraction at which the sequence is narrowest.
    """
    rho = mixture_tuning(alpha, when)
    out = [float(mixture_critical(t, alpha, rho)) for t in fractions]
    if fractions[-1] < 1:
        return tuple(out)
    state = _start()
    left = alpha / 2
    for t, b in zip(fractions[:-1], out[:-1], strict=True):
        left -= state.crossing_probability(t, 0.0, b)
        state = state.next(t, 0.0, b)
    out[-1] = min(out[-1], state.boundary(fractions[-1], left))
    return tuple(out)


def drift_for_power(fractions: Sequence[float], bounds: Sequence[float], power: float) -> float:
    """Return the mean of z at full data at which all looks together cross the upper boundary with this probability."""
    return find_root(lambda x: float(exits_above(fractions, bounds, x).sum()) - power, 0.0, 40.0, xtol=1e-9)


def expected_fraction(fractions: Sequence[float], bounds: Sequence[float], drift: float) -> float:
    """Return the expected fraction of the data at which a run with these interim looks stops."""
    stops = exits_above(fractions, bounds, drift) + exits_above(fractions, bounds, -drift)
    stops[-1] = 1 - float(stops[:-1].sum())
    return float(stops @ np.asarray(fractions, dtype=np.float64))
