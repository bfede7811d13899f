"""Scores per repeat from a finished file: the task is built again over the documents in the log.

A samples file keeps all K answers of a question but only the score that lm-eval made of them. Where
the task is plain (templates, registered filters and metrics), lm-eval's own objects are rebuilt
from the logged configuration and score every answer. A log is not trusted: nothing in it is run as
code, templates are rendered in a sandbox, tasks that execute the model's code are left alone, all of
it has limits (`bounded`), and what comes out must agree with the targets and scores in the log,
document by document.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from harness_noise.errors import InputError

from ..scoring.gather import Key, Scored
from ..scoring.rescore import GENERATE, patched, requests_of, rescore, right_answers
from .samples import Samples
from .scan import Row, Scan

_CHOOSING = ("take_first", "take_first_k", "majority_vote")
_EXTRACTING = ("regex", "regex_pos", "multi_choice_regex", "map")
_CLEANING = ("remove_whitespace", "lowercase", "uppercase")
FILTERS = (*_CHOOSING, *_EXTRACTING, *_CLEANING)
"""lm-eval's own filters that run no code of the task's."""
_CHUNK = 500
"""Documents per call of a filter; some cost 0.1 s a call."""


class NotSafeError(Exception):
    """Why a task cannot be rebuilt from its log."""


def rescored(
    config: Mapping[str, Any], samples: Samples, only: Collection[str] | None = None
) -> tuple[dict[Key, Scored], list[str]]:
    """The columns of the samples again, with a score for each of their K answers.

    Args:
        config: the task's entry in `configs` of the results file.
        samples: what was read.
        only: the metrics to score; None: all that are numbers, and those whose values are kept.

    Returns:
        (metric, filter) → column; and remarks of the scoring.

    Raises:
        NotSafeError: the task cannot be rebuilt, or does not reproduce the log.
    """
    usable = {
        metric
        for (metric, _), column in samples.columns.items()
        if column.raw is not None or column.kinds <= {"number", "missing"}
    }
    metrics = sorted(usable if only is None else usable.intersection(only))
    plain = _plain(config, metrics)
    try:
        import lm_eval  # noqa: F401
    except ImportError:
        raise NotSafeError("lm-eval is not installed (pip install harness-noise[lm-eval])") from None
    out: dict[Key, Scored] = {}
    notes: dict[str, None] = {}
    try:
        for scorer, documents, native, values, remarks in bounded(lambda: _scored(samples, plain, metrics)):
            notes.update(dict.fromkeys(remarks))
            for metric, several in values.items():
                column = out.setdefault((metric, scorer), Scored(raw=[] if metric in samples.wanted.raw else None))
                own = native.get(metric, [None] * len(documents))
                column.extend(documents, own, several)
    except StoppedError as error:
        if error.name == InputError.__name__:
            raise InputError(str(error)) from None
        ours = error.name in ("", NotSafeError.__name__)
        raise NotSafeError(str(error) if ours else f"it cannot be scored ({error.name}: {error})") from None
    return out, list(notes)


def _scored(samples: Samples, plain: dict[str, Any], metrics: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Filter, documents, metric → lm-eval's own values, and those per repeat, and remarks; some hundred at a time."""
    with _sandbox():
        task = None
        for scorer, documents, rows in _chunks(samples, metrics):
            if task is None:
                task = _build(plain, rows[0]["doc"])
            ensemble = next((candidate for candidate in task._filters if candidate.name == scorer), None)
            if ensemble is None:
                raise NotSafeError(f"its configuration has no filter {scorer!r}")
            if any(str(task.doc_to_target(row["doc"])) != row["target"] for row in rows):
                raise NotSafeError("its targets do not come out as they were logged")
            scores = rescore(task, ensemble, rows, samples.answers, samples.answers)
            if scores.mismatch:
                raise NotSafeError(
                    f"the installed lm-eval scores the first answers differently ({sorted(scores.mismatch)[0]})"
                )
            yield scorer, documents, scores.native, scores.values, scores.notes


def counted(samples: Samples) -> dict[Key, Scored]:
    """The columns of pass@1, whose value on a question is c of K right, as K scores: nothing is run.

    A column that has no such counts is left out.
    """
    out: dict[Key, Scored] = {}
    for (metric, scorer), column in samples.columns.items():
        values = list(column.values)
        if not column.kinds <= {"number"} or len(values) != len(column.rows):
            continue
        if (repeats := right_answers(metric, values, samples.answers)) is not None:
            out[metric, scorer] = Scored()
            out[metric, scorer].extend(column.rows, values, repeats)
    return out


def _plain(config: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    """The part of a logged configuration that scoring needs, if none of it is code."""
    listed = [metric for metric in _listed(config.get("metric_list")) if isinstance(metric, Mapping)]
    chosen = [dict(metric) for metric in listed if metric.get("metric") in metrics]
    own_code = [key for key in ("process_results", "use_prompt", "class") if config.get(key) is not None]
    reasons = {
        "there is no results file with the task's configuration": not config,
        f"{config.get('output_type')} answers do not vary": config.get("output_type") != GENERATE,
        "the task executes the model's code, which is never done again": config.get("unsafe_code"),
        f"the task scores with code of its own ({', '.join(own_code)})": own_code,
        "its metrics are not those of its configuration": {metric["metric"] for metric in chosen} != {*metrics}
        or not metrics,
        "a metric is loaded from the hub": any(metric.get("hf_evaluate") for metric in chosen),
    }
    for reason, holds in reasons.items():
        if holds:
            raise NotSafeError(reason)
    for metric in chosen:
        metric.pop("aggregation", None)  # not used here, and it may be logged source code
    plain = {
        key: config[key]
        for key in ("task", "output_type", "doc_to_target", "doc_to_choice", "target_delimiter", "filter_list")
        if config.get(key) is not None
    }
    for key in ("doc_to_target", "doc_to_choice"):
        if isinstance(plain.get(key), str) and _is_source(plain[key]):
            raise NotSafeError(f"{key} is a function")
    for ensemble in _listed(plain.get("filter_list", [])):
        steps = _listed(ensemble.get("filter", [])) if isinstance(ensemble, Mapping) else (None,)
        # a name may be of any type here, also one without a hash
        if not all(isinstance(step, Mapping) and step.get("function") in FILTERS for step in steps):
            raise NotSafeError("a filter of the task is code of its own")
    fixed = {"doc_to_text": " ", "dataset_path": "json", "test_split": "test", "repeats": 1, "num_fewshot": 0}
    return plain | fixed | {"metric_list": chosen, "generation_kwargs": {"until": ["\n"]}}


def _listed(value: Any) -> list[Any]:
    """A list; what is none holds something that nobody knows."""
    return value if isinstance(value, list) else [None]


def _is_source(text: str) -> bool:
    """Whether a logged value is the source or the name of a function."""
    return "{{" not in text and ("lambda" in text or "def " in text or text.startswith("<"))


def _build(config: dict[str, Any], doc: Mapping[str, Any]) -> Any:
    """lm-eval's task object over one document; the others are handed to it as they come."""
    from lm_eval.api.registry import METRIC_REGISTRY
    from lm_eval.api.task import ConfigurableTask

    class Docs(list):  # type: ignore[type-arg]
        """A split, as far as the constructor looks at it; no dataset library may alter a document."""

        features = dict.fromkeys(doc)

    class Rebuilt(ConfigurableTask):  # type: ignore[misc, unused-ignore]
        def download(self, *args: Any, **kwargs: Any) -> None:
            self.dataset = {"test": Docs([doc])}

    missing = [metric["metric"] for metric in config["metric_list"] if metric["metric"] not in METRIC_REGISTRY]
    if missing:
        raise NotSafeError(f"metric {missing[0]!r} is not one of lm-eval's own")
    return Rebuilt(config=config)


def _chunks(samples: Samples, metrics: Sequence[str]) -> Iterator[tuple[str, list[int], list[Row]]]:
    """Rows of one filter, some hundred at a time, as lm-eval's own code wants them."""
    waiting: dict[str, tuple[list[int], list[Row]]] = {}
    for _number, _line, row, document, scorer, _new in Scan(samples.path, samples.wanted, whole=True):
        documents, rows = waiting.setdefault(scorer, ([], []))
        documents.append(document)
        rows.append(_as_in_memory(row, metrics))
        if len(rows) == _CHUNK:
            yield scorer, *waiting.pop(scorer)
    for scorer, (documents, rows) in waiting.items():
        yield scorer, documents, rows


def _as_in_memory(row: Row, metrics: Sequence[str]) -> Row:
    there = [metric for metric in metrics if metric in row]
    kept: Row = {name: row[name] for name in ("doc_id", "doc", "resps", *there)}
    return kept | {"target": str(row["target"]), "arguments": requests_of(row["arguments"]), "metrics": there}


@contextmanager
def _sandbox() -> Iterator[None]:
    """Within it lm-eval renders templates in Jinja's sandbox and keeps its remarks to itself."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from lm_eval import utils

    boxed = ImmutableSandboxedEnvironment(undefined=utils.env.undefined, keep_trailing_newline=True)
    boxed.filters |= utils.env.filters
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with patched(utils, "env", boxed):
            yield
    finally:
        logging.disable(before)


SECONDS = 120.0
"""Computing time from one result to the next; a chunk of documents needs one or two seconds."""
MEMORY = 1 << 31
"""Bytes beyond what the process has at its start."""
_NO_MEMORY = 3


class StoppedError(Exception):
    """Why the work was stopped, or what it raised: `name` is the exception's."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


def bounded(work: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """What the work yields, each after a passage through JSON: tuples become lists, numpy's numbers Python's.

    Raises:
        StoppedError: it took too long or too much, or raised an exception; or this system has no `fork`.
    """
    if not hasattr(os, "fork"):
        raise StoppedError("this system has no fork, in which its patterns and templates could be stopped")
    source, target = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads are not needed in the fork
        child = os.fork()
    if child == 0:
        os.close(source)
        _work(work, target)
    os.close(target)
    ended = False
    try:
        with os.fdopen(source, encoding="ascii") as pipe:
            for line in pipe:
                if not line.endswith("\n"):
                    break
                name, value = json.loads(line)
                if name is not None:
                    raise StoppedError(value, name)
                yield value
        ended = True
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGPROF:
        raise StoppedError(f"it was stopped after {SECONDS:.0f} s: a pattern or template of the log does not end")
    if code == _NO_MEMORY:
        raise StoppedError(f"it was stopped at {MEMORY / 1e9:.0f} GB: a pattern or template of the log takes no end")
    if code < 0:
        raise StoppedError(f"it was ended by signal {-code}")


def _work(work: Callable[[], Iterator[Any]], target: int) -> NoReturn:
    """The life of the fork; nothing of what the process does at its end is done twice."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == "linux":
            _limit_memory()
        with os.fdopen(target, "w", encoding="ascii") as pipe:
            try:
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                for result in work():
                    pipe.write(json.dumps([None, result], default=_of_numpy) + "\n")
                    pipe.flush()
                    signal.setitimer(signal.ITIMER_PROF, SECONDS)
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - it is told to the parent
                pipe.write(json.dumps([type(error).__name__, str(error)]) + "\n")
        code = 0
    except MemoryError:
        code = _NO_MEMORY
    finally:
        os._exit(code)


def _limit_memory() -> None:
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[5])
    most = pages * resource.getpagesize() + MEMORY
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _of_numpy(value: Any) -> Any:
    """A number or an array of numpy's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__}")
