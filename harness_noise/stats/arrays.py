"""The names of the variance estimators, and the types of arrays, which `harness_noise.arrays` has."""

from __future__ import annotations

from typing import Literal

from ..arrays import BoolArray as BoolArray
from ..arrays import FloatArray as FloatArray
from ..arrays import IntArray as IntArray

Estimator = Literal["cr0", "cr1", "cr2", "cr3"]
