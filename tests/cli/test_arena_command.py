"""`arena` and comparisons of bare numbers, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from harness_noise.cli import main
from support.four_models import write_four_models


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_four_models(tmp_path_factory.mktemp("arena") / "scores.csv")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main([*arguments, "--format", "json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_arena_has_all_pairs_and_agrees_with_compare(scores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "arena", str(scores))
    assert {(row["model_a"], row["model_b"]) for row in found["pairs"]} == {
        (f"m{i}", f"m{j}") for i in range(4) for j in range(i + 1, 4)
    }
    (alone,) = run(capsys, "compare", str(scores), "--models", "m0,m3")["comparisons"]
    pair = next(row for row in found["pairs"] if (row["model_a"], row["model_b"]) == ("m0", "m3"))
    for name in ("diff", "se", "df", "ci_low", "p_value", "se_total", "se_data", "se_prediction", "wins_a", "p_sign"):
        assert pair[name] == pytest.approx(alone[name], rel=1e-9), name


def test_bare_numbers_are_judged_by_the_benchmarks_profile(
    scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "profile.json"
    assert main(["arena", str(scores), "--write-profile", str(profile), "-q"]) == 0
    capsys.readouterr()
    (row,) = run(capsys, "compare", "0.9", "0.2", "--profile", str(profile), "--models", "x,y")["comparisons"]
    assert (row["model_a"], row["verdict"], row["test"]) == ("x", "A better", "reference")
    (close,) = run(capsys, "compare", "0.51", "0.50", "--profile", str(profile))["comparisons"]
    assert close["verdict"] == "not separable"
    assert run(capsys, "plan", "--n", "500", "--profile", str(profile))["plan"]["mde"] > 0
    assert main(["compare", "x", "0.5", "--profile", str(profile)]) == 2
    assert "--profile is the noise of two bare numbers" in capsys.readouterr().err
    assert main(["compare", "0.9", "0.5", "0.3", "--profile", str(profile)]) == 2
    assert "two numbers" in capsys.readouterr().err


def test_nothing_of_a_users_is_overwritten_by_a_profile(
    scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious, profile = tmp_path / "precious.csv", tmp_path / "profile.json"
    precious.write_text("question,score\n1,1\n")
    before = precious.read_text()
    assert main(["arena", str(scores), "--profile", str(precious)]) == 2
    assert "use --write-profile FILE" in capsys.readouterr().err
    assert main(["arena", str(scores), "--write-profile", str(precious)]) == 2
    assert "is not a noise profile" in capsys.readouterr().err
    assert precious.read_text() == before
    for _ in range(2):  # a profile is ours
        assert main(["arena", str(scores), "--write-profile", str(profile)]) == 0
        assert f"wrote {profile}" in capsys.readouterr().err
    assert main(["arena", str(scores), "--write-profile", str(precious), "--force", "-q"]) == 0
    assert "noise-profile" in precious.read_text()
    assert main(["arena", str(scores), "--force"]) == 2


@pytest.mark.parametrize("option", ["-o", "--html=", "--write-profile"])
def test_no_output_takes_the_place_of_an_input(
    option: str, scores: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = scores.read_bytes()
    monkeypatch.chdir(scores.parent)
    other = f"./{scores.name}"
    written = [option + other] if option.endswith("=") else [option, other]
    command = "arena" if option == "--write-profile" else "analyze" if option == "-o" else "compare"
    models = ["--models", "m0,m3"] if command == "compare" else []
    assert main([command, str(scores), *models, *written]) == 2
    assert "no input is ever overwritten" in capsys.readouterr().err
    assert main(["analyze", str(scores), f"-o{scores}"]) == 2
    assert scores.read_bytes() == before


def test_no_output_takes_the_place_of_what_a_folder_holds_or_of_a_file_by_a_way_that_is_not_there(
    scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, runs = scores.read_bytes(), scores.parent
    for _ in range(2):  # what is written is no run, and may be replaced
        assert main(["analyze", str(runs), "--format", "json", "-o", str(runs / "out.json")]) == 0
    assert main(["analyze", str(runs), "-o", str(scores)]) == 2
    assert "no input is ever overwritten" in capsys.readouterr().err
    away = f"{runs}/missing/../{scores.name}"
    for arguments in (["arena", str(scores), "--write-profile", away], ["analyze", str(scores), "-o", away]):
        assert main(arguments) == 2
        assert "through a folder that is not" in capsys.readouterr().err
    assert scores.read_bytes() == before
    assert not (runs / "missing").exists()


def test_what_is_written_is_named(scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, option in (("compare", "--html"), ("compare", "-o"), ("analyze", "-o")):
        path = tmp_path / f"{command}{option}"
        models = ["--models", "m0,m3"] if command == "compare" else []
        assert main([command, str(scores), *models, option, str(path)]) == 0
        assert f"wrote {path}" in capsys.readouterr().err
    plot = tmp_path / "plan.svg"
    assert main(["plan", "--n", "100", "--accuracy", "0.7", "--format", "svg", "-o", str(plot)]) == 0
    assert f"wrote {plot}" in capsys.readouterr().err


def test_a_run_that_cannot_be_read_is_left_out_or_ends_it_all(
    scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text("question,score\nq0,not-a-number\n")
    assert main(["arena", str(scores), str(broken)]) == 0
    out, err = capsys.readouterr()
    assert "left out" in err
    assert "broken.csv" in err
    assert "m0" in out
    assert main(["arena", str(scores), str(broken), "--strict"]) == 2
    assert "broken.csv" in capsys.readouterr().err


def test_a_folder_of_several_harnesses_with_broken_files_in_it(
    scores: Path, tmp_path: Path, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("lm_eval/asdiv", "lm_eval/asdiv_cot", "inspect/versions"):
        (folder / Path(name).name).symlink_to(shared_data / name)
    (folder / "scores.csv").write_text(scores.read_text())
    (folder / "broken.csv").write_text("question,score\nq0,not-a-number\n")
    (folder / "results_cut.json").write_text('{"results": {')
    (folder / "cut.eval").write_text("PK")
    (folder / "notes.txt").write_text("not a run at all")
    assert main(["arena", str(folder), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert {row["task"] for row in json.loads(out)["benchmarks"]} == {"table"}
    assert sum("--follow-links" in line for line in err.splitlines()) == 1  # the links lead out of the folder
    assert main(["arena", str(folder), "--follow-links", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert {(row["task"], row["scorer"]) for row in found["benchmarks"]} >= {("asdiv", "none"), ("popularity", "match")}
    assert {"m0", "m1"} <= {row["model"] for row in found["models"]}
    left_out = [line for line in err.splitlines() if line.startswith("harness-noise: left out")]
    for name in ("broken.csv", "results_cut.json", "cut.eval"):
        assert sum(name in line for line in left_out) == 1
    assert "notes.txt" not in err
    assert main(["arena", str(folder), "--strict"]) == 2
    assert main(["arena", str(folder), "--follow-links", "--strict"]) == 2


@pytest.mark.process
def test_reading_in_processes_gives_the_same(scores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = scores.with_name("other.csv")
    copy.write_text(scores.read_text().replace(",m", ",n"))
    one = run(capsys, "arena", str(scores), str(copy))
    two = run(capsys, "arena", str(scores), str(copy), "--jobs", "2")
    assert one["pairs"] == two["pairs"]


@pytest.mark.parametrize("form", ["table", "csv", "markdown", "latex"])
def test_every_format_shows_the_arena(form: str, scores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arena", str(scores), "--format", form, "-q"]) == 0
    assert "m3" in capsys.readouterr().out


@pytest.mark.parametrize("test", ["wild", "sign"])
def test_the_arena_takes_the_tests_of_all_pairs(test: str, scores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = run(capsys, "arena", str(scores), "--test", test, "--adjust", "none")["pairs"]
    (one,) = run(capsys, "compare", str(scores), "--models", "m0,m3", "--test", test)["comparisons"]
    same = next(row for row in pairs if (row["model_a"], row["model_b"]) == ("m0", "m3"))
    for field in ("p_value", "ci_low", "ci_high", "verdict", "interval", "test"):
        assert same[field] == (pytest.approx(one[field]) if isinstance(one[field], float) else one[field])


def test_two_counts_are_fishers_test_and_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    from scipy.stats import fisher_exact

    (row,) = run(capsys, "compare", "74/100", "60/100")["comparisons"]
    assert row["p_value"] == pytest.approx(fisher_exact([[74, 26], [60, 40]]).pvalue)
    assert (row["test"], row["diagnostics"], row["diff"]) == ("fisher", ["unpaired"], pytest.approx(0.14))
    assert main(["compare", "74/100", "60/100"]) == 0
    assert "only counts are known" in capsys.readouterr().err
    assert main(["compare", "101/100", "60/100"]) == 2
    assert "101 of 100" in capsys.readouterr().err
    assert main(["compare", "74/100", "60/100", "--margin", "20"]) == 2
    assert "Did you mean 0.2 (20%)?" in capsys.readouterr().err
    assert main(["compare", "50/100", "90/100"]) == 0
    assert "p < 0.0001" in capsys.readouterr().out


def test_several_tasks_have_an_overall_row_and_other_methods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from scipy.stats import wilcoxon

    rng = np.random.default_rng(5)
    for name, p in (("a", 0.65), ("b", 0.5)):
        rows = [f"t{t},q{i},{int(rng.random() < p)}" for t in range(7) for i in range(60)]
        (tmp_path / f"{name}.csv").write_text("task,question,score\n" + "\n".join(rows) + "\n")
    found = run(capsys, "compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    *tasks, overall = found["comparisons"]
    diffs, ses = (np.array([row[name] for row in tasks]) for name in ("diff", "se"))
    methods = {item["method"]: item for item in found["combined"]}
    assert (overall["task"], overall["weights"], overall["p_adjusted"]) == ("overall", "equal", overall["p_value"])
    assert (overall["diff"], overall["se"]) == pytest.approx((diffs.mean(), (ses @ ses) ** 0.5 / 7))
    assert methods["inverse variance"]["se"] == pytest.approx((ses**-2.0).sum() ** -0.5)
    if len(np.unique(np.abs(diffs))) == 7:
        assert methods["Wilcoxon signed-rank"]["p_value"] == pytest.approx(wilcoxon(diffs).pvalue)
    alone = run(capsys, "compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--weights", "none")
    assert "combined" not in alone
    assert alone["comparisons"] == tasks


def test_noise_by_factor_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(2)
    prompt = rng.normal(0, 0.2, 6)
    rows = [
        f"q{q},p{p},s{s},{0.5 + prompt[p] + rng.normal(0, 0.05)}" for q in range(30) for p in range(6) for s in "12345"
    ]
    path = tmp_path / "scores.csv"
    path.write_text("question,prompt,seed,score\n" + "\n".join(rows) + "\n")
    found = run(capsys, "factors", str(path), "--factor", "prompt=prompt", "--factor", "seed=seed")
    share = {row["factor"]: row["share"] for row in found["factors"]}
    assert found["n_answers"] == 900
    assert share["prompt"] > 0.8
    assert "new levels of prompt" in found["advice"]
    assert main(["factors", str(path), "--factor", "prompt=prompt"]) == 0
    assert "new levels of prompt" in capsys.readouterr().out
    path.with_name("few.csv").write_text(
        "\n".join(["question,prompt,seed,score", *(row for row in rows if ",p5," in row or ",p4," in row)])
    )
    assert main(["factors", str(path.with_name("few.csv")), "--factor", "prompt=prompt"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "prompt has only 2 levels, so no advice can be given yet. So far the prompt adds most (SE" in shown
    assert "prompt has 2 levels: its variance lies anywhere between" in shown
    assert main(["factors", str(path), "--factor", "judge=judge"]) == 2
    assert "There are question, prompt, seed, score" in capsys.readouterr().err
    assert main(["factors", str(path)]) == 2
