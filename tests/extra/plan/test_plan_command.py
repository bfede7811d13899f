"""`plan` as a command."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from harness_noise.cli import main
from harness_noise.stats.power import noncentrality
from support.four_models import write_four_models


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_four_models(tmp_path_factory.mktemp("plan") / "scores.csv")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main([*arguments, "--format", "json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_plan_of_the_papers_example(capsys: pytest.CaptureFixture[str]) -> None:
    plan = run(capsys, "plan", "--effect", "0.03", "--omega2", str(1 / 9), "--sigma2", "0")["plan"]
    assert plan["n_questions"] == 971
    for K, mde in (("1", 0.1334), ("10", 0.0760)):
        arguments = ["plan", "--n", "198", "--omega2", str(1 / 9), "--sigma2", str(1 / 6), "--repeats", K]
        assert run(capsys, *arguments)["plan"]["mde"] == pytest.approx(mde, abs=5e-5)


def test_a_plan_from_runs_is_the_comparisons_noise(scores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = run(capsys, "compare", str(scores), "--models", "m0,m3")["comparisons"]
    one, two = scores.with_name("m0.csv"), scores.with_name("m3.csv")
    lines = scores.read_text().splitlines()
    for path, name in ((one, "m0"), (two, "m3")):
        path.write_text("\n".join([lines[0], *(line for line in lines[1:] if f",{name}," in line)]) + "\n")
    plan = run(capsys, "plan", "--n", "120", "--repeats", "3", "--from", str(one), str(two))["plan"]
    assert plan["omega2"] == pytest.approx(120 * row["var_data"])
    assert plan["plug_in"]["mde"] == pytest.approx(float(noncentrality(0.05, 0.8, row["df"])) * row["se"], rel=1e-9)
    assert plan["mde"] > plan["plug_in"]["mde"]
    assert (plan["assurance"], plan["n_clusters"], plan["cluster_size"]) == (0.8, 24, 5)
    assert main(["plan", "--effect", "0.1", "--from", str(one), str(two), "--details"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "80% assured" in shown
    assert "estimate" in shown
    assert "clusters of 5 questions" in shown
    assert "The plan is for A − B of two runs like these" in shown


def test_clusters_of_a_plan_can_be_chosen(scores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mde = {}
    for spec in ("cluster", "none"):
        (row,) = run(capsys, "compare", str(scores), "--models", "m0,m3", "--cluster", spec)["comparisons"]
        path = [str(scores.with_name(f"{name}-{spec}.csv")) for name in ("m0", "m3")]
        lines = scores.read_text().splitlines()
        for name, at in zip(("m0", "m3"), path, strict=True):
            Path(at).write_text("\n".join([lines[0], *(x for x in lines[1:] if f",{name}," in x)]) + "\n")
        found = run(capsys, "plan", "--n", "120", "--repeats", "3", "--cluster", spec, "--from", *path)["plan"]
        mde[spec] = found["plug_in"]["mde"]
        assert mde[spec] == pytest.approx(float(noncentrality(0.05, 0.8, row["df"])) * row["se"], rel=1e-9)
        assert run(capsys, "plan", "--n", "120", "--repeats", "3", "--cluster", spec, "--from", *path)["plan"] == found
    assert mde["cluster"] != pytest.approx(mde["none"], rel=1e-3)


def test_nothing_is_planned_from_runs_without_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(20)))
    assert main(["plan", "--effect", "0.03", "--from", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]) == 2
    assert "there is no noise to plan with" in capsys.readouterr().err


def test_without_data_three_theories_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    plan = run(capsys, "plan", "--effect", "0.05", "--accuracy", "0.8")["plan"]
    assert [item["theory"] for item in plan["theory"]] == ["rule of thumb", "Beta theory", "independence bound"]
    assert plan["theory"][2]["variance"] == pytest.approx(2 * 0.8 * 0.2)
    assert main(["plan", "--effect", "0.05", "--accuracy", "0.8"]) == 0
    assert "independence bound" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the noise comes from one of"),
        (["--omega2", "0.1"], "--effect"),
        (["--omega2", "0.1", "--effect", "0"], "--effect 0 must be above 0"),
        (["--omega2", "0.1", "--effect", "0.1", "--n", "10", "--power", "0.8"], "give two: the third follows"),
        (["--omega2", "0.1", "--accuracy", "0.5", "--effect", "0.1"], "--accuracy"),
        (["--accuracy", "0.5", "--effect", "0.1", "run"], "named with --from"),
        (["--omega2", "0.1", "--sigma2", "a,b", "--effect", "0.1"], "'--sigma2': 'a,b' is not one number, or two"),
        (["--accuracy", "0.5", "--effect", "0.1", "--cluster", "x"], "--cluster"),
        (["--accuracy", "0.5", "--effect", "0.1", "--clusters", "x"], "write --cluster"),
        (["--accuracy", "0.5", "--effect", "0.1", "--alpha", "0.1"], "--alpha is now --level"),
        (["--accuracy", "0.5", "--effect", "2"], "Did you mean 0.02 (2%)?"),
        (["--omega2", "0.1", "--effect", "0.1", "--range", "0,1"], "name a run"),
        (["--profile", "{missing}", "--effect", "0.1"], "cannot be read"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *(part.format(missing=tmp_path / "none.json") for part in arguments)]) == 2
    assert words in capsys.readouterr().err


def test_the_plan_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "curve.svg"
    arguments = ["--n", "100", "--omega2", "0.1", "--sigma2", "0.1", "--format", "svg", "-o", str(path)]
    assert main(["plan", *arguments]) == 0
    capsys.readouterr()
    marks = [title.text for title in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}title")]
    assert any(text and "questions, K = 4: 0." in text for text in marks)
    assert main(["plan", *arguments[:6], "--details"]) == 0
    assert "K = 4" in capsys.readouterr().out


def test_a_plan_reads_its_runs_as_other_commands_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    path, plain = tmp_path / "own.csv", tmp_path / "plain.csv"
    rows = [
        (model, f"q{i}", k, "" if rng.random() < 0.2 else int(rng.random() < 0.6))
        for model in "abc" for i in range(60) for k in range(2)
    ]  # fmt: skip
    path.write_text("model,frage,attempt,gut\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    zero = [(*row[:3], row[3] or 0) for row in rows if row[0] != "c"]
    plain.write_text("model,question,repeat,score\n" + "".join(",".join(map(str, row)) + "\n" for row in zero))
    columns = ["--columns", "question=frage,score=gut"]
    asked = ["plan", "--effect", "0.1", "--from", str(path), *columns, "--models", "a,b", "--missing", "zero"]
    want = run(capsys, "plan", "--effect", "0.1", "--from", str(plain))["plan"]
    assert run(capsys, *asked)["plan"] == want
    alone = run(capsys, "plan", "--effect", "0.1", "--from", str(path), *columns, "--models", "c")["plan"]
    assert alone["sigma2_b"] is None
    again = tmp_path / "again"
    again.mkdir()
    for names in (("m_1.csv", "m_2.csv"), ("m.csv", "again/m.csv")):
        for k, name in enumerate(names):
            some = [row for row in zero if row[0] == "a" and row[2] == k]
            (tmp_path / name).write_text("model,question,score\n" + "".join(f"a,{row[1]},{row[3]}\n" for row in some))
    runs = [str(tmp_path / name) for name in ("m_1.csv", "m_2.csv")]
    joined = run(capsys, "plan", "--effect", "0.1", "--from", *runs, "--as-repeats")["plan"]
    unlike = [str(tmp_path / name) for name in ("m.csv", "again/m.csv")]
    assert main(["plan", "--effect", "0.1", "--from", *unlike, "--as-repeats"]) == 2
    assert "cannot be taken for repeats: their ids only number the questions" in capsys.readouterr().err
    both = run(capsys, "plan", "--effect", "0.1", "--from", str(plain), "--models", "a")["plan"]
    assert joined["n_questions"] == both["n_questions"]
    assert main(["plan", "--effect", "0.1", "--accuracy", "0.7", *columns]) == 2
    assert "--columns is about --from, and none is given" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["table", "csv", "markdown", "latex"])
def test_every_format_shows_the_plan(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--n", "100", "--omega2", "0.1", "--format", form, "-q"]) == 0
    assert "100" in capsys.readouterr().out
