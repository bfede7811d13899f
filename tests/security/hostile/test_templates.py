"""What a file says is a field, never a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.notes import noted

from .limits import limited, log, shown, table

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="the limits of memory and time need Linux"),
]

HOSTILE = {
    "loop": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "memory": "{% set x = 'a' * 8000000000 %}{{ x }}",
    "long": "{{ '" + "a" * 39_000 + "' * 200000 }}",
    "brackets": "{{ " + "[" * 3000 + "]" * 3000 + " }}",
    "unclosed": "{{" * 20_000,
    "of a task": "t={{ 'a' * 8000000000 }}",
    "crossed": "passage*{{ 'a' * 8000000000 }}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_template_of_a_log_is_shown_and_never_run(tmp_path: Path, name: str) -> None:
    path = log(tmp_path / "a.json", noise=True, noise_cluster=HOSTILE[name])
    found = shown("analyze", path)
    (row,) = found["estimates"]
    assert (row["n_questions"], row["mean"]) == (40, 0.5)
    assert (row["se"], row["ci_low"], row["ci_high"]) == (None, None, None)
    assert "cluster_template" in row["diagnostics"]
    notes = " ".join(noted(found["notes"]))
    assert "never run" in notes
    assert HOSTILE[name].removeprefix("t=")[:20] in notes


def test_a_gate_cannot_judge_by_clusters_that_nobody_knows(tmp_path: Path) -> None:
    a = log(tmp_path / "a.json", noise=True, noise_cluster="{{ passage }}")
    b = log(tmp_path / "b.json", noise=True, noise_cluster="{{ passage }}")
    text = b.read_text().replace('"value": 1}', '"value": 0.9}').replace('"value": 0.5}', '"value": 0.45}')
    b.write_text(text)
    for words in (["--against", b], ["--floor", "0.1"], ["--against", b, "--pooled"]):
        done = limited("gate", a, *words)
        assert done.returncode == 2, done.stdout
        assert "cannot judge" in done.stdout
    (row,) = shown("compare", a, b)["comparisons"]
    assert (row["se"], row["p_value"]) == (None, None)
    assert "cluster_template" in row["diagnostics"]


def test_the_user_may_repeat_it_or_name_a_field(tmp_path: Path) -> None:
    path = log(tmp_path / "a.json", noise=True, noise_cluster="{{ passage }}")
    for spec, n in (("{{ passage }}", 10), ("passage", 10), ("none", None)):
        (row,) = shown("analyze", path, "--cluster", spec)["estimates"]
        assert row["se"] is not None
        assert (row["cluster"], row["n_clusters"]) == (None if spec == "none" else spec, n or 40)
    (row,) = shown("analyze", log(tmp_path / "b.json", noise=True, noise_cluster="passage"))["estimates"]
    assert (row["cluster"], row["n_clusters"]) == ("passage", 10)


def test_a_template_of_the_user_stays_one(tmp_path: Path) -> None:
    rows = "".join(f"q{i},{i % 2},p{i // 4}\n" for i in range(40))
    path = table(tmp_path / "a.csv")
    path.write_text(f"question,score,passage\n{rows}")
    (row,) = shown("analyze", path, "--cluster", "{{ passage }}")["estimates"]
    assert row["n_clusters"] == 10


@pytest.mark.parametrize(
    "spec", ["{{ passage }}; touch x", "{{ `touch x` }}", '{{ "$(touch x)" }}\'s', "{{ a }}\\", "{{ 'a' }}!!"]
)
def test_the_flag_to_repeat_is_one_word_of_a_shell(tmp_path: Path, spec: str) -> None:
    """What is printed to be copied runs nothing that the file says."""
    path = log(tmp_path / "a.json", noise=True, noise_cluster=spec)
    said = limited("analyze", path, "--format", "sentence").stderr
    word = said.partition("--cluster ")[2].partition(". Or name a field")[0]
    assert subprocess.check_output(["sh", "-c", f"printf '<%s>' {word}"], cwd=tmp_path, text=True) == f"<{spec}>"
    assert not (tmp_path / "x").exists()
