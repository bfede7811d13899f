"""Packages of others: what an installer lays beside a module, and a copy of this one that a test may change."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import harness_noise as hn

PACKAGE = Path(hn.__file__).parent


def install(folder: Path) -> Path:
    """Write what an installer makes of a `pyproject.toml`, with its entry points, beside the modules of a folder."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items())
              for group, names in project["entry-points"].items()]  # fmt: skip
    about.joinpath("entry_points.txt").write_text("\n".join(points))
    return folder


def copied(folder: Path, *left_out: str) -> Path:
    """Return a copy of the core package in a folder, without the parts whose names are left out."""
    ignored = shutil.ignore_patterns("__pycache__", *left_out)
    return Path(shutil.copytree(PACKAGE, folder / "harness_noise", ignore=ignored))


def contents(folder: Path) -> dict[str, str]:
    """Return path → text of the files of a folder, without what Python and installers write."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in files
        if not {"__pycache__"} & {*path.parts} and ".dist-info" not in str(path)
    }
