"""Where in a samples file the documents are."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness_noise.data.questions import Hashes, occurrences

from .lines import _HALF

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    BoolArray = NDArray[np.bool_]


_HELD = 1 << 22


class Index:
    """Numbers the documents of a file: (doc_hash, occurrence), apart for each filter.

    A hash table with open addressing beside the packed keys; a dict of strings would take ten times the
    memory.
    """

    def __init__(self) -> None:
        self.keys = Hashes()
        """The doc_hash of each document; a further occurrence has that of the first."""
        self._hashes = array("I")
        """Half of Python's own hash of each key, which nobody who makes a file can foresee."""
        self._slots = array("i", [-1]) * 1024
        """Numbers of documents, at most half of the places taken."""
        self._seen: dict[str, bytearray] = {}
        """Filter → whether each document, by its first occurrence, has come."""
        self._again: dict[int, list[int]] = {}
        """First occurrence → the further ones."""
        self._past: dict[tuple[str, int], int] = {}
        """(filter, first occurrence) → how many of the further ones have come."""

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, key: str, scorer: str) -> tuple[int, bool]:
        """The document's number, and whether it is new. Order within a filter tells duplicates apart."""
        slots, known = self._slots, len(self._hashes)
        wanted = hash(key) & _HALF
        mask = len(slots) - 1
        slot = wanted & mask
        while (first := slots[slot]) >= 0:
            if self._hashes[first] == wanted and self.keys[first] == key:
                break
            slot = slot + 1 & mask
        else:
            slots[slot] = first = known
            self._append(key, wanted)
        seen = self._seen.get(scorer)
        if seen is None:
            seen = self._seen[scorer] = bytearray()
        if first == len(seen):
            seen.append(1)
            return first, first == known
        if first > len(seen):
            seen.extend(bytes(first + 1 - len(seen)))
        if not seen[first]:
            seen[first] = 1
            return first, first == known
        others = self._again.setdefault(first, [])
        past = self._past.get((scorer, first), 0)
        self._past[scorer, first] = past + 1
        if past == len(others):
            others.append(known)
            self._append(key, wanted)
        return others[past], others[past] == known

    def distinct(self) -> int:
        """How many different keys there are."""
        return len(self) - sum(map(len, self._again.values()))

    def unique_keys(self) -> Sequence[str]:
        """The keys, with the further occurrences numbered. It ends the numbering of documents."""
        if not self._again:
            return self.keys
        found = {number: f"{self.keys[first]}#{n}"
                 for first, others in self._again.items() for n, number in enumerate(others, 2)}  # fmt: skip
        if any("#" in key for key in self.keys.odd()):
            return occurrences(self.keys)
        for number, name in found.items():
            self.keys.replace(number, name)
        return self.keys

    def _append(self, key: str, hashed: int) -> None:
        self.keys.append(key)
        self._hashes.append(hashed)
        if 2 * len(self._hashes) <= len(self._slots):
            return
        self._slots = slots = array("i", [-1]) * (2 * len(self._slots))
        mask = len(slots) - 1
        further = {number for others in self._again.values() for number in others}
        for number, slot in enumerate(self._hashes):
            if number not in further:
                while slots[slot & mask] >= 0:
                    slot += 1
                slots[slot & mask] = number
