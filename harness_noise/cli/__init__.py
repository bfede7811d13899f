"""The command line: a thin client of the library."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (0 done, 1 a gate tripped, 2 unusable, 130 stopped).

    Without `argv` the process is ours: its standard streams are made to outlive their readers, and Ctrl-C
    ends it at once. lm-eval keeps its own ways.
    """
    try:  # here everything begins: what is imported above this line, Ctrl-C finds unguarded
        arguments = list(sys.argv[1:] if argv is None else argv)
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


def _run(arguments: list[str]) -> int:
    import click

    from ..errors import InputError
    from .commands import cli

    debug = "--debug" in arguments
    try:
        with cli.make_context("harness-noise", list(arguments), obj=tuple(arguments)) as context:
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
    from .flags import in_flags

    if isinstance(error, OSError) and error.strerror and error.filename:
        error = OSError(f"{error.filename}: {error.strerror}")
    return "".join(c if c.isprintable() else "�" for c in in_flags(" ".join(str(error).split())))
