"""The result of `factors`: noise by source."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .._version import __version__
from .display import Shown
from .forms import SCHEMA_VERSION, frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class FactorRow:
    """One source of noise."""

    factor: str
    """question, a labelled factor, `question × factor`, or residual."""
    var: float | None
    """Variance component per answer, raw: it may be negative; null where it is not identified."""
    var_low: float | None
    """95 % confidence interval of the component; raw like `var`, which it holds; null where it is not known."""
    var_high: float | None
    share: float | None
    """Of the sum of all identified components, those below 0 counted as 0."""
    df: float
    """Levels − 1; for the residual, answers − cells."""
    levels: int
    se: float | None
    """What it adds to the standard error of the mean of all these answers, √."""
    gain: float | None
    """By what share 1,000 more answers on new levels of it lower the variance of the mean; null where a factor with
    fewer than five levels leaves that unknown."""
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Factors(Shown):
    """Noise by factor, and where the next thousand answers help most."""

    kind: ClassVar[str] = "factors"

    n_answers: int
    mean: float
    factors: tuple[FactorRow, ...]
    advice: str
    notes: tuple[str, ...] = ()
    """How little is known of which factor; one sentence each."""

    shows_notes: ClassVar[bool] = True
    """Its tables say the notes themselves."""

    def to_dict(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        rows = [asdict(item) | {"diagnostics": list(item.diagnostics)} for item in self.factors]
        return {
            "schema_version": SCHEMA_VERSION,
            "harness_noise_version": __version__,
            "settings": {},
            "n_answers": self.n_answers,
            "mean": self.mean,
            "factors": rows,
            "advice": self.advice,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> pd.DataFrame:
        return frame(asdict(item) | {"diagnostics": " ".join(item.diagnostics)} for item in self.factors)
