"""The command line: a thin client of the library."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Return 0 done, 1 a failed verdict, 2 unusable, 130 interrupted. Raise with --debug.

    Without `argv` the process is ours: its standard streams are made to outlive their readers, and Ctrl-C
    ends it at once. lm-eval keeps its own ways. Whatever is unexpected is a 2 with a paragraph: a 1 is a
    verdict alone, and Python would end with 1.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:  # here everything begins: what is imported above this line, Ctrl-C finds unguarded
        if argv is None and arguments[:1] != ["lm-eval"]:
            import gc

            gc.set_threshold(100_000)  # imports make many objects and hardly any garbage: a tenth of a small command
            from ..io.stopping import stop_on_interrupt

            stop_on_interrupt()
            from .streams import harden

            harden()
        return _run(arguments)
    except KeyboardInterrupt:
        from ..io.stopping import STOPPED, stop_message

        print(stop_message(on_terminal=sys.stderr.isatty()), end="", file=sys.stderr)
        return STOPPED
    except (Exception, SystemExit) as error:
        if arguments[:1] == ["lm-eval"] or "--debug" in arguments:
            raise
        print(_unexpected(error), file=sys.stderr)
        return 2


def _unexpected(error: BaseException) -> str:
    """Return a paragraph for the user on an unforeseen error, with its place. Never fails itself."""
    import traceback

    try:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = "".join(
            f" at {frame.filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.lineno}" for frame in last
        )
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    except Exception:  # noqa: BLE001  anybody's exception, anybody's words
        where, what = "", type(error).__name__
    clean = "".join(c if c.isprintable() else "�" for c in what)
    return (
        f"harness-noise: unexpected, nothing was decided: {clean}{where}. This is a mistake of harness-noise: please "
        "report it with the file and the command at https://github.com/harness-noise/harness-noise/issues (--debug "
        "shows the place)"
    )


def _run(arguments: list[str]) -> int:
    import click

    from ..errors import InputError
    from .commands import COMMANDS, cli
    from .routing import asked_for_help

    wanted = asked_for_help(arguments, COMMANDS)
    if isinstance(wanted, str):
        print(wanted)
        return 0
    debug = "--debug" in arguments
    try:
        with cli.make_context("harness-noise", wanted, obj=tuple(arguments)) as context:
            code = cli.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (InputError, OSError) as error:
        if debug:
            raise
        print(f"harness-noise: {_one_paragraph(error)}", file=sys.stderr)
        return 2


def _one_paragraph(error: Exception) -> str:
    from .commands import in_flags

    if isinstance(error, OSError) and error.strerror and error.filename:
        error = OSError(f"{error.filename}: {error.strerror}")
    return "".join(c if c.isprintable() else "�" for c in in_flags(" ".join(str(error).split())))
