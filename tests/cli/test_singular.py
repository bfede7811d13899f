"""One of a thing is named in the singular, whatever prints it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness_noise.cli import main

TABLES = {
    "a.csv": "question,cluster,score\nq1,c1,1\n",
    "b.csv": "question,cluster,score\nq1,c1,0\n",
    "hole.csv": "question,cluster,repeat,score\nq1,c1,0,1\nq1,c1,1,\n",
    "twice.csv": "question,score\nq1,1\nq1,1\nq2,0\n",
}
THINGS = "questions|answers|runs|tasks|clusters|models|labels|repeats|rows|values|files|columns|samples|pairs"
PLURAL = re.compile(rf"(?<!> )(?<![\w.,/–=−])1 (?:{THINGS})\b")  # not "K > 1 repeats"


@pytest.mark.parametrize(
    "command",
    [
        "list a.csv", "list hole.csv", "analyze a.csv --details", "analyze hole.csv --details --cluster cluster",
        "analyze twice.csv --details", "analyze a.csv --format sentence", "compare a.csv b.csv --details",
        "compare a.csv b.csv --cluster cluster --format sentence", "gate a.csv --floor 0.5 --details",
        "arena a.csv b.csv --details", "plan --from a.csv b.csv --effect 0.1",
    ],
)  # fmt: skip
def test_one_of_a_thing_is_singular(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    main(command.split())
    said = capsys.readouterr()
    assert said.out or said.err
    assert PLURAL.findall(said.out + said.err) == []
