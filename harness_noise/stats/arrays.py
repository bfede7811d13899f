"""The names of the variance estimators, and what `arrays` has."""

from __future__ import annotations

from ..arrays import BoolArray as BoolArray
from ..arrays import FloatArray as FloatArray
from ..arrays import IntArray as IntArray
from ..arrays import blank as blank
from ..arrays import columns_of as columns_of
from ..arrays import put as put
from ..arrays import rows_of as rows_of
from ..settings import Estimator as Estimator
