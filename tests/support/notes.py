"""What notes say: tests read the sentences, as a person does."""

from __future__ import annotations

from typing import Any

from harness_noise.data.notes import Note


def noted(found: Any) -> tuple[str, ...]:
    """The sentences of a result's or a run's notes, of notes, or of those in JSON."""
    notes = getattr(found, "notes", found)
    return tuple(note.as_text() if isinstance(note, Note) else note["text"] for note in notes)
