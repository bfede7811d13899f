"""lm-eval's own command line with the `--noise` options added to `run`.

Without `--noise` (and without a `noise:` block in lm-eval's `--config` YAML) arguments, outputs and
exit codes are lm-eval's own, whatever they are.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import TYPE_CHECKING, Any

from harness_noise.data.notes import texts
from harness_noise.errors import InputError

from ...asking import ASKED
from .options import Options, block, read_file

if TYPE_CHECKING:
    from .hook import Session
    from .saving import Saving

_FLAGS: dict[str, tuple[str | None, str]] = {
    "repeats": (
        "K",
        "answers per question of generate_until tasks: a number, auto (until more of them no longer pay), or TASK=K "
        "(repeatable, the last that matches a task counts)",
    ),
    "cluster": (
        "SPEC",
        "questions that belong together: a field, a template, auto, task, none, or TASK=SPEC (repeatable)",
    ),
    "group": ("NAME=PATTERN", "average the tasks that match PATTERN in a row NAME (repeatable)"),
    "config": ("FILE", "YAML or JSON file with these options"),
    "no_rows": (None, "add no visible <metric>_avg rows"),
    "no_reseed": (None, "send the harness's one seed with every repeat"),
    "journal": (
        "auto|reuse|off",
        "take up further answers of runs into this folder that did not finish (auto), of finished ones, too (reuse), "
        "or keep none (off)",
    ),
    "level": ("LEVEL", "coverage of the intervals (default 0.95)"),
    **ASKED,
}
"""Option without its prefix `--noise_` → its value in words (None for a switch) and its help."""
OLDEST = "0.4.10"
"""The first lm-eval whose command line can be extended: the extra, the tests and the docs have this version."""
_REPEATABLE = ("repeats", "cluster", "group", "complete")
_EPILOG = "error bars (harness-noise), options of run (`lm-eval run --help` explains them):\n" + fill(
    " ".join(["--noise", *(f"--noise_{name}" for name in _FLAGS)]), initial_indent="  ", subsequent_indent="  "
)


def main(argv: list[str]) -> int:
    """Run `lm-eval ARGV` with our options. Return its exit code, 1 after a printed error. Wrong options: InputError.

    Raises:
        InputError: a noise option that cannot be used, lm-eval is not installed, or a cluster field
            that the documents do not have.
    """
    before = sys.argv
    sys.argv = ["lm-eval", *argv]
    try:
        _execute()
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except InputError:
        raise
    except Exception:  # noqa: BLE001 - lm-eval's own faults end as they do without us
        traceback.print_exc()
        return 1
    finally:
        sys.argv = before
    return 0


def _execute() -> None:
    try:
        import lm_eval
    except ImportError:
        raise InputError("lm-eval is not installed: pip install 'harness-noise[lm-eval]'") from None
    try:
        from lm_eval._cli import HarnessCLI
    except ImportError:
        version = getattr(lm_eval, "__version__", f"of before {OLDEST}")
        raise InputError(
            f"lm-eval {version} has no command line that can be extended: use {OLDEST} or newer, or the "
            "context manager harness_noise_adapters.lm_eval_harness.noise"
        ) from None
    from lm_eval.utils import setup_logging

    class NoiseCLI(HarnessCLI):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            with suppress(Exception):  # words for `--help`; what can be run does not depend on them
                self._parser.epilog = f"{self._parser.epilog or ''}\n{_EPILOG}"
            parser = self._subparsers.choices["run"]
            # an option that was not given must not make lm-eval's abbreviations ambiguous (--n)
            if any(word.startswith("--noise") or word in ("-h", "--help") for word in sys.argv):
                add_arguments(parser)
            inner = parser.get_default("func")
            parser.set_defaults(func=lambda args: _run(args, inner))

    setup_logging()
    cli = NoiseCLI()
    cli.execute(cli.parse_args())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the `--noise…` options to lm-eval's argument parser."""
    group = parser.add_argument_group("noise (harness-noise)")
    group.add_argument("--noise", action="store_true", help="add error bars with their parts to the results")
    for name, (value, words) in _FLAGS.items():
        kind = {"metavar": value, "action": "append" if name in _REPEATABLE else "store"}
        group.add_argument(f"--noise_{name}", help=words, **({"action": "store_true"} if value is None else kind))


def _run(args: argparse.Namespace, inner: Callable[[argparse.Namespace], None]) -> None:
    wanted = vars(args).pop("noise", False)  # lm-eval rejects what it does not know
    flags = {name: value for name in _FLAGS if (value := vars(args).pop(f"noise_{name}", None)) not in (None, False)}
    with _own_config(args) as in_yaml:
        if not wanted and in_yaml is None:
            if flags:
                raise InputError(
                    f"--noise_{next(iter(flags))} does nothing without --noise: add --noise, or leave it out"
                )
            inner(args)
            return
        from .hook import Session
        from .saving import Saving
        from .sessions import installed

        try:
            session = Session(_options(flags, in_yaml))
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours must not stop the run
            print(f"harness-noise: the run goes on without its noise ({error!r})", file=sys.stderr)
            inner(args)
            return
        session.saving = Saving(session.say)
        with installed(session):
            try:
                inner(args)
            finally:
                session.saving.close()
    with suppress(Exception):  # the run is saved: a table is not worth its exit code
        report(session)
    if session.interrupted:
        raise KeyboardInterrupt


def _options(flags: dict[str, Any], in_yaml: dict[str, Any] | None) -> Options:
    """Return checked Options, also if none is set: flags override the `--noise_config` file, and that the block."""
    chosen = dict(in_yaml or {})
    if "config" in flags:
        chosen |= read_file(flags.pop("config"))
    for name, value in flags.items():
        if name.startswith("no_"):
            chosen[name.removeprefix("no_")] = False
        else:
            chosen["groups" if name == "group" else name] = value
    return Options.of(chosen, "--noise")


@contextmanager
def _own_config(args: argparse.Namespace) -> Iterator[dict[str, Any] | None]:
    """Set `args.config` to a copy without our `noise:` block, deleted after the with block. Yield its options, or None.

    Anything else that is wrong with the file is left for lm-eval to say.
    """
    path = getattr(args, "config", None)
    content = _yaml(path) if path else None
    if not isinstance(content, dict) or "noise" not in content:
        yield None
        return
    import yaml

    ours = content.pop("noise")
    with ExitStack() as stack:
        try:
            folder = TemporaryDirectory(prefix="harness-noise-", ignore_cleanup_errors=True)  # the run is saved by then
            copy = Path(stack.enter_context(folder)) / "config.yaml"
            copy.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"{path}: a copy without the noise block, for lm-eval, cannot be written among the temporary files "
                f"({error.strerror}): make room, set TMPDIR, or use the --noise flags"
            ) from None
        args.config = str(copy)
        yield None if ours is False else block(ours, str(path))


def _yaml(path: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None


def next_step(session: Session) -> str | None:
    """Return a sentence on what to do next after a run of the command line. None without an analysis.

    None where that is not known.
    """
    saving, analysis = session.saving, session.analysis
    if saving is None or analysis is None:
        return None
    if saving.root is None:
        return "Next: with --output_path DIR --log_samples the answers are kept, so that two runs can be compared."
    if saving.cut or saving.results is None:
        return not_whole(saving)
    if not saving.samples:
        return "Next: with --log_samples the answers are kept, so that two runs can be compared."
    run, against = shlex.quote(str(saving.place)), session.options.against
    if not any(row.stopped_early for row in analysis.drawn):
        return f"Next: harness-noise compare {run} BASELINE tests this run against another one."
    if against is None:
        return f"Next: harness-noise analyze {run} shows this run again."
    # with another baseline nothing allows for early stopping
    return f"Next: harness-noise compare {run} {shlex.quote(str(against))} shows this decision again."


def not_whole(saving: Saving) -> str:
    """Return a sentence on which files of an incompletely saved run are not whole on disk, and what to do."""
    tasks = [task for task in saving.cut if task]
    what = f"the samples of {', '.join(tasks)} are" if tasks else "the results are"
    if saving.results is not None and set(tasks) <= saving.samples.keys():
        what += " those of lm-eval's own answers: with the further ones they could not be saved"
    else:
        what += " not saved whole"
    return (
        f"Next: make room in {saving.root} (is the disk full?) and give the same command again, which takes up the "
        f"further answers. Now {what}."
    )


def report(session: Session) -> None:
    """Print our table and advice after lm-eval's own, and unsaid notes on stderr. Nothing on other ranks.

    Nothing on other ranks, or where there is no analysis.
    """
    if session.analysis is None or os.environ.get("LOCAL_RANK", "0") != "0":
        return
    try:
        from harness_noise.cli.commands import in_flags
        from harness_noise.extras import display_of
        from harness_noise.report import parts, sentences, terminal
        from harness_noise.results.parts import KEYWORD, STOPS

        if session.analysis.estimates:
            lines = sentences.closing_lines(session.analysis.estimates, "lm-eval", session.native_se)
            lines += [display_of(KEYWORD).stopped(row) for row in getattr(session.analysis, STOPS)]
            lines += parts.drawn(session.analysis)
            terminal.print_live(sys.stdout, session.analysis, lines, in_flags)
            for line in (next_step(session), *session.saved_requests):
                if line is not None:  # a command is not folded, so that it can be copied
                    print(line)
    except Exception as error:  # noqa: BLE001 - anything may be wrong with a terminal
        session.failed("the noise table could not be printed", error)
    for sentence in texts(session.analysis.notes):
        if sentence not in (*session.warnings, *session.saved_requests):
            print(f"harness-noise: {sentence}", file=sys.stderr)
