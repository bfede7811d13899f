"""Bring the public files of `manifest.jsonl` into a cache: from local copies of the repositories, else from the web.

    python tests/corpus/fetch.py [--mirrors DIR] [--offline]

DIR holds bare repositories or clones named OWNER+NAME, OWNER/NAME or NAME. The cache is the folder that the
environment variable HARNESS_NOISE_CORPUS names, by default `harness-noise/corpus` in the user's cache folder. A
file that is there and has the recorded hash is not fetched again; none is kept whose hash differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SECONDS = 60.0
"""How long one file may take."""


def manifest() -> list[dict[str, Any]]:
    """The entries: each is one file, or one run in several files of which the first is the one to read."""
    return [json.loads(line) for line in (HERE / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]


def cache() -> Path:
    """The folder that keeps what was fetched."""
    named = os.environ.get("HARNESS_NOISE_CORPUS")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else home / "harness-noise" / "corpus"


def place(entry: dict[str, Any], file: dict[str, Any]) -> Path:
    """Where the cache keeps a file of an entry; each entry has a folder, so that none sees another's files."""
    return cache() / entry["repository"].replace("/", "+") / entry["id"] / Path(file["path"]).name


def intact(path: Path, file: dict[str, Any]) -> bool:
    """Whether the cache has this very file."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == file["sha256"]


def from_mirror(mirrors: Path, repository: str, file: dict[str, Any]) -> bytes | None:
    """The file out of a local copy of its repository, None where there is none."""
    owner, name = repository.split("/")
    for folder in (mirrors / f"{owner}+{name}", mirrors / owner / name, mirrors / name):
        for git in (folder / "repo" / ".git", folder / "repo", folder / ".git", folder, folder.with_suffix(".git")):
            if (git / "objects").is_dir():
                command = ["git", f"--git-dir={git}", "show", f"{file['commit']}:{file['path']}"]
                done = subprocess.run(command, capture_output=True)
                return done.stdout if done.returncode == 0 else None
    return None


def from_web(repository: str, file: dict[str, Any]) -> bytes | None:
    """The file from the hosting site, None where it is not to be had."""
    url = f"https://raw.githubusercontent.com/{repository}/{file['commit']}/{urllib.parse.quote(file['path'])}"
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            data: bytes = answer.read(file["size"] + 1)
            return data
    except (urllib.error.URLError, TimeoutError, OSError):
        return None


def missing(entries: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any], Path]]:
    """The files that the cache lacks."""
    for entry in entries:
        for file in entry["files"]:
            path = place(entry, file)
            if not intact(path, file):
                yield entry, file, path


def main() -> int:
    """Fetch what is missing; exit code 0 although some files cannot be had, for the tests skip them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirrors", type=Path, help="folder with local copies of the repositories")
    parser.add_argument("--offline", action="store_true", help="take nothing from the web")
    chosen = parser.parse_args()
    entries = manifest()
    total = sum(len(entry["files"]) for entry in entries)
    lost: Counter[str] = Counter()
    for entry, file, path in missing(entries):
        repository = entry["repository"]
        data = from_mirror(chosen.mirrors, repository, file) if chosen.mirrors else None
        if data is None and not chosen.offline:
            data = from_web(repository, file)
        if data is None:
            lost[f"{repository}: not reached"] += 1
        elif hashlib.sha256(data).hexdigest() != file["sha256"]:
            lost[f"{repository}: another content than the recorded one"] += 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    print(f"{total - sum(lost.values())} of {total} files are in {cache()}")
    for reason, count in sorted(lost.items()):
        print(f"  {count} of {reason}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
