"""The types of arrays, once for all rooms, and dataclasses whose fields are columns of P rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
HashArray: TypeAlias = NDArray[np.uint64]
PixelArray: TypeAlias = NDArray[np.uint8]
AnyArray: TypeAlias = NDArray[Any]
NamesLike: TypeAlias = Sequence[object] | NDArray[np.generic]
"""A name for each question, such as that of its cluster or task."""
HUGE = 1e70
"""Scores beyond it are taken for infinite: their fourth powers, of which degrees of freedom are made, are."""
Rows = TypeVar("Rows", bound="DataclassInstance")


def columns_of(table: DataclassInstance) -> dict[str, Any]:
    """Return a dict from field name to array of a table that is a dataclass of arrays."""
    return {name: getattr(table, name) for name in _names(type(table))}


@cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(column.name for column in fields(kind))


@cache
def _start(kind: type[DataclassInstance]) -> tuple[Any, ...]:
    start = {"FloatArray": np.float64(np.nan), "IntArray": np.intp(0), "BoolArray": np.bool_(False)}
    return tuple(start[str(column.type)] for column in fields(kind))


def blank(kind: type[Rows], P: int) -> Rows:
    """Create a table of P rows to be filled in: numbers are NaN, counts 0 and flags False at first."""
    return kind(*(np.full(P, start) for start in _start(kind)))


def picked(column: Any, rows: Any) -> Any:
    """Return the entries of a column (array or sequence) at these rows. None stays None."""
    return column[rows] if isinstance(column, np.ndarray) else column and tuple(column[i] for i in rows)


def rows_of(table: Rows, rows: Any) -> Rows:
    """Return a table with only these rows of each column."""
    return type(table)(*(picked(column, rows) for column in columns_of(table).values()))


def put(table: DataclassInstance, rows: IntArray | BoolArray, part: DataclassInstance) -> None:
    """Overwrite these rows of a table with the rows of another, in place."""
    for name, column in columns_of(part).items():
        getattr(table, name)[rows] = column


def stacked(parts: Sequence[Rows]) -> Rows:
    """Return one table with the rows of several tables one below another."""
    if len(parts) == 1:
        return parts[0]
    return type(parts[0])(*map(np.concatenate, zip(*(columns_of(part).values() for part in parts), strict=True)))
