"""The types of the arrays that estimators take, and the names of the variance estimators."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Estimator = Literal["cr0", "cr1", "cr2", "cr3"]
