"""Ctrl-C: the program ends at once, with one line.

Unwinding by KeyboardInterrupt would depend on what runs at the moment: an import of another package that swallows it, a
C extension, or a destructor that prints a traceback. There is nothing to unwind: files appear by a rename, so only the
temporary ones have to go.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

STOPPED = 130
"""The exit code: 128 + SIGINT, as a shell gives it."""

temporary_files: set[Path] = set()
"""The files that this process is writing and has not yet renamed."""
temporary_folders: set[Path] = set()
"""Folders that hold one of these files each."""


def stop_on_interrupt() -> None:
    """From now on, let Ctrl-C end this process at once with one line in place of a traceback.

    If Ctrl-C is ignored (a shell's `&`), it stays so.

    For a process of our own only: not for a harness's, which has things to put in order.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    owner = os.getpid()

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if os.getpid() == owner:  # a forked worker has the handler too, and says nothing
            # workers of a pool would wait for ever for a process that is gone
            for child in getattr(sys.modules.get("multiprocessing.process"), "active_children", tuple)():
                child.kill()
            for path in tuple(temporary_files):
                with suppress(OSError):
                    path.unlink()
            for folder in tuple(temporary_folders):
                with suppress(OSError):
                    folder.rmdir()
            with suppress(OSError):  # past Python's stream, which may be in the middle of a line
                os.write(2, stop_message(on_terminal=os.isatty(2)).encode())
        os._exit(STOPPED)

    signal.signal(signal.SIGINT, stop)


def stop_message(*, on_terminal: bool) -> str:
    """Return the line printed after Ctrl-C. On a terminal it also clears a progress bar."""
    return ("\r\033[K\033[?25h" if on_terminal else "") + "harness-noise: stopped\n"
