"""Programs that may not reach the network."""

from __future__ import annotations

from pathlib import Path

from support.processes import environment

# in every Python process: loopback and local sockets are the machine itself, everything else is written down
WATCH = """
import os, sys

def watch(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        place = str(arguments[0])
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if not isinstance(address, tuple):  # a path: a local socket
            return
        place = str(address[0])
    else:
        return
    if place not in ("127.0.0.1", "::1", "localhost", "None", "0.0.0.0", ""):
        with open(os.environ["WATCHED"], "a") as file:
            file.write(f"{event} {place}\\n")
        raise OSError(f"no network: {event} {place}")

sys.addaudithook(watch)
"""


def without_network(folder: Path) -> tuple[dict[str, str], Path]:
    """The environment of programs whose sockets are watched, and the file that exists once one tried to connect."""
    hook, seen = folder / "hook", folder / "seen.txt"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(WATCH)
    return environment(hook, WATCHED=str(seen)), seen
