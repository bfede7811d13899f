"""Sequences of strings that take little memory: a million hashes as a tuple of `str` take 120 MB, here 32 MB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import eq
from typing import overload

_BLOCK = 1024
"""Strings that are packed at once: one at a time would take longer than to read them."""


class Packed(Sequence[str]):
    """Equal to any packed sequence and to any tuple with the same strings, as a tuple would be."""

    __slots__ = ()

    def _item(self, index: int) -> str:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(map(self._item, range(*index.indices(len(self)))))
        return self._item(range(len(self))[index])

    def __iter__(self) -> Iterator[str]:
        return map(self._item, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Packed, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))


class Hashes(Packed):
    """Hexadecimal hashes, all as wide as the first, two digits to a byte; any other string is kept beside them."""

    __slots__ = ("_data", "_odd", "_waiting", "_width")

    def __init__(self) -> None:
        self._width = 0
        self._data = bytearray()
        self._odd: dict[int, str] = {}
        self._waiting: list[str] = []

    def append(self, text: str) -> None:
        self._waiting.append(text)
        if len(self._waiting) == _BLOCK:
            self._pack()

    def extend(self, texts: Iterable[str]) -> None:
        self._waiting.extend(texts)
        if len(self._waiting) >= _BLOCK:
            self._pack()

    def replace(self, index: int, text: str) -> None:
        """Put another string in the place of one."""
        self._pack()
        self._odd[index] = text

    def odd(self) -> Iterable[str]:
        """Those that are not packed."""
        self._pack()
        return self._odd.values()

    def distinct(self) -> int:
        """How many different strings there are."""
        import numpy as np

        self._pack()
        if not self._width:
            return len(set(self))
        found = np.frombuffer(self._data, f"V{self._width}")
        if self._odd:
            found = np.delete(found, list(self._odd))
        found = np.sort(found)
        return min(1, len(found)) + int((found[1:] != found[:-1]).sum()) + len(set(self._odd.values()))

    def _pack(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._width:
            self._width = max(1, len(waiting[0]) // 2)
        data = _unhexed("".join(waiting))
        if data is not None and set(map(len, waiting)) <= {2 * self._width}:
            self._data += data
            return
        for text in waiting:
            single = _unhexed(text)
            if single is None or len(single) != self._width:
                self._odd[len(self._data) // self._width] = text
                single = bytes(self._width)
            self._data += single

    def _item(self, index: int) -> str:
        if self._waiting:
            self._pack()
        if self._odd and index in self._odd:
            return self._odd[index]
        return self._data[index * self._width : (index + 1) * self._width].hex()

    def __len__(self) -> int:
        return len(self._data) // (self._width or 1) + len(self._waiting)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Hashes):
            self._pack()
            other._pack()
            if (self._width, self._data, self._odd) == (other._width, other._data, other._odd):
                return True
        return super().__eq__(other)

    __hash__ = Packed.__hash__


class Lines(Packed):
    """Short texts without line breaks, in blocks of UTF-8."""

    __slots__ = ("_blocks", "_waiting")

    _SIZE = 64

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._waiting: list[str] = []

    def append(self, text: str) -> None:
        self._waiting.append(text)
        if len(self._waiting) == self._SIZE:
            self._blocks.append("\n".join(self._waiting).encode("utf-8", "surrogatepass"))
            self._waiting = []

    def _block(self, number: int) -> list[str]:
        if number == len(self._blocks):
            return self._waiting
        return self._blocks[number].decode("utf-8", "surrogatepass").split("\n")

    def _item(self, index: int) -> str:
        return self._block(index // self._SIZE)[index % self._SIZE]

    def __iter__(self) -> Iterator[str]:
        for number in range(len(self._blocks) + 1):
            yield from self._block(number)

    def __len__(self) -> int:
        return len(self._blocks) * self._SIZE + len(self._waiting)


def distinct_strings(items: Sequence[str]) -> int:
    """How many different strings there are, without unpacking packed ones."""
    return items.distinct() if isinstance(items, Hashes) else len(set(items))


def _unhexed(text: str) -> bytes | None:
    """The bytes that a text of lower-case hexadecimal digits stands for; None for any other."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    return data if data.hex() == text else None
