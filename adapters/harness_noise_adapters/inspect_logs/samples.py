"""What a log says of a few questions: the whole input, the target, and every answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_noise.data.questions import Told
from harness_noise.errors import InputError

from ..json_stream import JsonStream
from . import bounds
from .records import _target_text, input_text

_PIECE = 1 << 18


@dataclass(frozen=True, slots=True)
class SampleLog:
    """Read again where somebody asks; see `harness_noise.data.questions.Log`."""

    path: Path
    keys: Sequence[str]
    """The ids of the questions, in their order."""

    def read(self, rows: Sequence[int], scorer: str) -> list[Told]:
        """What is told of these questions, by their place; nothing of one that the log has lost."""
        wanted = {self.keys[row] for row in rows}
        found: dict[str, dict[int, Mapping[str, Any]]] = {key: {} for key in wanted}
        try:
            for sample in _samples(self.path, wanted):
                key, epoch = str(sample.get("id")), sample.get("epoch")
                if key in wanted and isinstance(epoch, int):
                    found[key][epoch] = sample
        except (ValueError, OSError, RecursionError) as error:
            raise InputError(f"{self.path}: its samples cannot be read ({error})") from None
        return [_told([sample for _, sample in sorted(found[self.keys[row]].items())], scorer) for row in rows]


def _samples(path: Path, wanted: set[str]) -> Iterator[Mapping[str, Any]]:
    """The samples of a log; of an archive those whose file is called after what is wanted."""
    if path.suffix == ".eval":
        with bounds.Archive(path) as archive:
            names = [name for name in archive.members if name.startswith(bounds.SAMPLES) and name.endswith(".json")]
            called = [name for name in names if name[len(bounds.SAMPLES) :].rpartition("_epoch_")[0] in wanted]
            for name in called or names:
                sample = JsonStream(archive.pieces(name)).value()
                if isinstance(sample, dict):
                    yield sample
        return
    with path.open("rb") as file:
        stream = JsonStream(iter(lambda: file.read(_PIECE), b""))
        for name in stream.members():
            if name == "samples" and stream.is_array():
                yield from (item for item in stream.items() if isinstance(item, dict))
            else:
                stream.value()


def _told(samples: Sequence[Mapping[str, Any]], scorer: str) -> Told:
    if not samples:
        return Told()
    given, target = samples[0].get("input"), samples[0].get("target")
    return Told(
        text=input_text(given) if isinstance(given, (str, list)) else None,
        target=_target_text(target) if isinstance(target, (str, list)) else None,
        answers=tuple(_answer(sample, scorer) for sample in samples),
    )


def _answer(sample: Mapping[str, Any], scorer: str) -> str:
    """What the model wrote last, else what the scorer took for its answer."""
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, Mapping) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        if isinstance(message, Mapping) and (text := input_text([{**message, "role": "user"}])):
            return text
    scores = sample.get("scores")
    score = scores.get(scorer.partition("/")[0]) if isinstance(scores, Mapping) else None
    answer = score.get("answer") if isinstance(score, Mapping) else None
    return answer if isinstance(answer, str) else ""
