"""What a newcomer meets on the usual errands: each message says what to type, and what it says works when typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn
from harness_noise.analysis.ranges import Ends, score_range
from harness_noise.cli import main
from harness_noise.cli.commands import in_flags
from harness_noise.errors import InputError
from harness_noise.settings import Settings

N = 40


def scores(path: Path, header: str, row: str, n: int = N, seed: int = 0) -> str:
    """Write a table, whose rows have the number i of a question, a score x of 0 or 1 and a grade g from 2 to 9."""
    drawn = np.random.default_rng(seed).integers(0, 2, n)
    rows = [row.format(i=i, x=drawn[i], g=2 + (i * 7 + seed) % 8) for i in range(n)]
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *command: str, code: int = 0) -> tuple[str, str]:
    assert main([*command]) == code
    out, err = capsys.readouterr()
    return " ".join(out.split()), " ".join(err.split())


def test_metrics_of_two_names_are_matched_as_advised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = scores(tmp_path / "a.csv", "question,score", "q{i},{x}")
    rows = [f"sums,{metric},q{i},{i % 2}" for metric in ("acc", "acc_norm") for i in range(N)]
    b = tmp_path / "b.csv"
    b.write_text("\n".join(["task,metric,question,score", *rows]))
    _, err = said(capsys, "compare", a, str(b), code=2)
    advice = re.search(r"Name one of each: (.*)$", err)
    assert advice is not None
    out, _ = said(capsys, "compare", a, str(b), *shlex.split(advice[1]))
    assert "a is" in out
    assert f"{N} questions" in out


def test_unlike_questions_are_matched_as_advised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = scores(tmp_path / "a.csv", "id,words,score", "a{i},text {i},{x}")
    b = scores(tmp_path / "b.csv", "question,wording,score", "b{i},text {i},{x}", seed=1)
    _, err = said(capsys, "compare", a, b, "--columns", "A:question=id", code=2)
    assert "Their first are 'a0' and 'b0'." in err
    assert "--columns A:question=FIELD,B:question=FIELD" in err
    out, _ = said(capsys, "compare", a, b, "--columns", "A:question=words,B:question=wording")
    assert f"{N} questions" in out


def test_a_list_takes_its_flag_once_each() -> None:
    assert in_flags("`metrics=['score', 'a b']`") == "--metric score --metric 'a b'"
    assert in_flags("`range=(LOW, HIGH)`") == "--range LOW,HIGH"


def test_zeros_outside_the_range_are_the_missing_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded = scores(tmp_path / "a.csv", "question,score", "q{i},{g}")
    Path(graded).write_text(Path(graded).read_text() + "q_gap,\n")
    _, err = said(capsys, "analyze", graded, "--missing", "zero", "--range", "1,10", code=2)
    assert "--missing zero counts missing answers as 0, which is not within --range 1,10" in err
    _, err = said(capsys, "analyze", graded, "--range", "3,10", code=2)
    assert "the scores go from 2 to 9" in err


def test_a_zero_below_every_grade_is_said_with_what_to_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [scores(tmp_path / f"{name}.csv", "question,score", "q{i},{g}", seed=i) for i, name in enumerate("abc")]
    for path in files[:2]:
        Path(path).write_text(Path(path).read_text() + "q_gap,\n")
    advice = "If the scale has no 0, leave --missing zero out and give the scale's ends (for grades from 1 to 10,"
    for count, command in (
        ("score: 1 missing answer counts as 0, below the lowest score seen, 2.", ("analyze", files[0])),
        ("score: 2 missing answers count as 0, below the lowest score seen, 2.", ("compare", *files[:2])),
        ("score: 2 missing answers count as 0, below the lowest score seen, 2.", ("arena", *files)),
    ):
        _, err = said(capsys, *command, "--missing", "zero")
        assert f"{count} {advice} --range 1,10):" in err
        for known in (("--missing", "zero", "--range", "0,10"), ("--range", "1,10")):
            assert "below the lowest" not in said(capsys, *command, *known)[1]
    out, _ = said(capsys, "analyze", files[0], "--range", "1,10", "--details")
    assert "if the 1 missing answer was wrong or right" in out


@pytest.mark.parametrize("row", ["q{i},{x}", "q{i},1", "q{i},0.{g}"])
def test_a_scale_with_a_zero_has_room_for_missing_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str
) -> None:
    file = scores(tmp_path / "a.csv", "question,score", row)
    Path(file).write_text(Path(file).read_text() + "q_gap,\n")
    assert "below the lowest" not in said(capsys, "analyze", file, "--missing", "zero")[1]


def test_zeros_below_a_declared_range_are_the_missing_answers() -> None:
    grades = Ends("essays, grade", 0, 9, (1, 10), proportion=False)
    with pytest.raises(InputError, match=r"counts missing answers as 0, .* the declared range \[1, 10\]. Leave it out"):
        score_range([grades], Settings(missing="zero"))


def test_a_grade_of_zero_is_a_score_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = scores(tmp_path / "a.csv", "question,score", "q{i},{g}")
    Path(file).write_text(Path(file).read_text() + "q_gap,\nq_nil,0\n")
    assert "below the lowest" not in said(capsys, "analyze", file, "--missing", "zero")[1]


def test_three_runs_are_an_arena_as_advised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [scores(tmp_path / f"{name} 1.csv", "question,score", "q{i},{x}", seed=i) for i, name in enumerate("abc")]
    _, err = said(capsys, "compare", *files, code=2)
    advice = re.search(r"`harness-noise (arena .*?)`", err)
    assert advice is not None
    assert shlex.split(advice[1]) == ["arena", *files]
    assert "arena" not in said(capsys, "regress", *files, "--on", "question", code=2)[1]


def test_a_table_is_exported_as_advised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = scores(tmp_path / "a 1.csv", "question,score", "q{i},{x}")
    _, err = said(capsys, "export", file, "-o", str(tmp_path / "out"), code=2)
    printed, written = re.findall(r"`harness-noise (.*?)`", err)
    assert said(capsys, *shlex.split(printed))[0].startswith("task,")
    said(capsys, *shlex.split(written.replace("DIR", str(tmp_path / "out"))))
    assert any((tmp_path / "out").rglob("*.jsonl"))


def test_labels_that_are_not_drawn_lead_to_what_uses_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged = scores(tmp_path / "a 1.csv", "question,score", "q{i},{x}", n=200)
    labels = scores(tmp_path / "the labels.csv", "question,label", "q{i},{x}", n=200, seed=1)
    lines = Path(labels).read_text().splitlines()
    Path(labels).write_text("\n".join([lines[0], *lines[1::2]]))
    _, err = said(capsys, "label", judged, "--labels", labels, code=2)
    for command in re.findall(r"`harness-noise (.*?)`", err):
        said(capsys, *shlex.split(command.replace("-se S", "-se 0.03")))
    assert "--r2 belongs to a plan: add --plan" in said(capsys, "label", judged, "--r2", "0.4", code=2)[1]
    _, err = said(capsys, "label", judged, "--plan", "--labels", labels, "--labels", labels, code=2)
    assert "--labels is given 2 times: it takes one value. Keep one." in err


def test_a_judges_correction_has_its_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged = scores(tmp_path / "a.csv", "question,score", "q{i},{x}", n=200)
    labels = scores(tmp_path / "labels.csv", "question,label", "q{i},{x}", n=200, seed=1)
    lines = Path(labels).read_text().splitlines()
    Path(labels).write_text("\n".join([lines[0], *lines[1::2]]))
    out, _ = said(capsys, "analyze", judged, "--labels", labels)
    assert re.search(r"to which the labels add −?[\d.]+ ± [\d.]+ points", out)
    assert re.search(r"correction −?[\d.]+ ± [\d.]+ points", out)
    out, _ = said(capsys, "label", judged, "--labels", labels, "--plan", "--target-se", "4pt")
    assert out.startswith("For a standard error of 4 points, ")  # the answer comes first


def test_changes_since_a_checkpoint_have_their_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    each = [scores(tmp_path / f"step-{i}.csv", "question,score", "q{i},{x}", seed=i) for i in (100, 200, 300)]
    out, _ = said(capsys, "arena", *each, "--over", "step")
    assert "Checkpoints: table score; differences in points" in out


def test_a_paper_has_no_note_on_a_table_that_it_lacks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    runs = {}
    for name, chances in (("a", (0.9, 0.2)), ("b", (0.2, 0.9))):
        rows = [f"t{j},q{i},{int(rng.random() < p)}" for j, p in enumerate(chances) for i in range(100)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["task,question,score", *rows]))
        runs[name] = str(tmp_path / f"{name}.csv")
    found = hn.compare(runs["a"], runs["b"])
    assert any(row.note for row in found.combined)  # the tasks differ, so one method is refused
    hn.write_paper(found, tmp_path / "paper")
    assert "inverse variance" not in (tmp_path / "paper" / "table.tex").read_text()


def test_no_two_tables_of_a_plan_have_one_title(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pilot = [
        scores(tmp_path / f"{name}.csv", "question,repeat,score", f"q{{i}},{k},{{x}}", seed=k)
        for k, name in ((1, "a"), (2, "b"))
    ]
    for k, path in enumerate(pilot):
        more = scores(tmp_path / "more.csv", "question,repeat,score", "q{i},3,{x}", seed=k + 5)
        Path(path).write_text(Path(path).read_text() + "\n".join(Path(more).read_text().splitlines()[1:]))
    out, _ = said(capsys, "plan", "--effect", "0.1", "--from", *pilot)
    assert out.count("A − B of two runs") - out.count("A − B of two runs, K = ") <= 2  # its own title, and a sentence
    assert "A − B of two runs, K = " in out


def test_a_run_is_shown_in_one_line(tmp_path: Path) -> None:
    path = scores(tmp_path / "a.csv", "question,score", "q{i},{x}")
    (run,) = hn.read(path)
    assert repr(run) == f"<Run a ({path}): table / score ({N} questions)>"
    assert repr(run.scores[0]) == f"<Scores table / score: {N} questions, K = 1>"


def test_a_result_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = scores(tmp_path / "a.csv", "question,score", "q{i},{x}")
    for command in (("analyze", path), ("compare", path, scores(tmp_path / "b.csv", "question,score", "q{i},{g}"))):
        result = tmp_path / f"{command[0]}.json"
        said(capsys, *command, "--range", "0,10", "--format", "json", "-o", str(result))
        for reader in ("analyze", "list"):
            _, err = said(capsys, reader, str(result), code=2)
            assert "this is a result that harness-noise wrote (--format json), not a run" in err


def test_a_model_called_like_the_other_side_is_no_letter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (
        scores(tmp_path / f"{name}.csv", "question,score", form) for name, form in (("A", "q{i},0"), ("B", "q{i},1"))
    )
    out, _ = said(capsys, "compare", b, a)
    assert out.startswith("model B is better than model A by 100.0 points")
    assert "A 100.0% model B B 0.0% model A A − B 100.0 points" in out
    out, _ = said(capsys, "compare", a, b)
    assert out.startswith("A is worse than B")


def test_two_runs_of_a_model_called_b_have_their_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    a = scores(tmp_path / "new" / "B.csv", "question,score", "q{i},1")
    b = scores(tmp_path / "old" / "B.csv", "question,score", "q{i},0")
    out, _ = said(capsys, "compare", a, b)
    assert out.startswith("B (new) is better than B (old) by 100.0 points")


@pytest.mark.parametrize(
    ("header", "row", "answer", "target"),
    [
        ("question,answer,score", "q{i},said {i},{g}", "said ", None),
        ("id,question,expected,answer,score", "q{i},What is {i}?,right {i},said {i},{x}", "said ", "right "),
        ("id,prompt,gold,output,correct", "q{i},What is {i}?,right {i},said {i},{x}", "said ", "right "),
        ("id,question,correct answer,reply,grade", "q{i},What is {i}?,right {i},said {i},{x}", "said ", "right "),
        ("id,question,answer,completion,score", "q{i},What is {i}?,right {i},said {i},{x}", "said ", "right "),
        ("id,question,answer,llm_answer,score", "q{i},What is {i}?,right {i},said {i},{x}", "said ", "right "),
        ("id,question,label,prediction,score", "q{i},What is {i}?,right {i},said {i},{x}", "said ", "right "),
        (
            "id,question,reference_answer,model_reply,score",
            "q{i},What is {i}?,right {i},said {i},{x}",
            "said ",
            "right ",
        ),
        ("id,question,answer_key,final_answer,score", "q{i},What is {i}?,right {i},said {i},{x}", "said ", "right "),
    ],
)
def test_the_words_of_the_model_and_the_right_answer_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], header: str, row: str, answer: str, target: str | None
) -> None:
    out = tmp_path / "labels.csv"
    _, err = said(capsys, "label", scores(tmp_path / "judged.csv", header, row), "-n", "30", "-o", str(out))
    first = pd.read_csv(out).iloc[0]
    assert str(first["answer"]).startswith(answer)
    assert pd.isna(first["target"]) if target is None else str(first["target"]).startswith(target)
    unsure = target is None
    assert ("draw again with --columns target=answer" in err) is unsure
    assert "no words of the model" not in err


def test_a_lone_answer_that_differs_within_a_question_is_the_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"q{i},{r},said {i} {r},{(i + r) % 2}" for i in range(40) for r in range(3)]
    path = tmp_path / "judged.csv"
    path.write_text("question,repeat,answer,score\n" + "\n".join(lines) + "\n")
    out = tmp_path / "labels.csv"
    _, err = said(capsys, "label", str(path), "-n", "30", "-o", str(out))
    assert "--columns" not in err
    sheet = pd.read_csv(out)
    assert sheet["target"].isna().all()
    assert [text.split()[1:] for text in sheet["answer"]] == [
        [key[1:], str(r)] for key, r in zip(sheet["question"], sheet["repeat"], strict=True)
    ]
    _, err = said(capsys, "label", str(path), "-n", "30", "-o", str(out), "--force", "--columns", "target=answer")
    assert "no words of the model" in err
    assert pd.read_csv(out)["answer"].isna().all()


def test_two_runs_with_different_lone_answers_show_them_as_the_models_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for differ in (True, False):
        a, b = (
            scores(tmp_path / f"{name}.csv", "question,answer,score", f"q{{i}},said {name * differ} {{i}},{score}")
            for name, score in (("x", 1), ("y", "{g}"))
        )
        out, _ = said(capsys, "compare", a, b, "--questions", "1", "--details")
        assert ("Target" in out) is not differ
        assert ("said x" in out and "said y" in out) is differ


def test_a_short_option_with_two_dashes_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = said(capsys, "label", "run.csv", "--n", "100", code=2)
    assert "No such option --n: it is -n." in err


def test_the_columns_of_answers_can_be_named_and_switched_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = scores(
        tmp_path / "a.csv", "question,said,meant,response,target,score", "q{i},mine {i},right {i},x {i},y {i},{g}"
    )
    out = str(tmp_path / "labels.csv")
    for columns, answer, target in (
        ("repeat=none", "x ", "y "),
        ("response=said,target=meant", "mine ", "right "),
        ("response=target", "y ", None),
        ("response=none", None, "y "),
        ("target=none", "x ", None),
    ):
        said(capsys, "label", file, "-n", "30", "-o", out, "--force", "--columns", f"score=score,{columns}")
        first = pd.read_csv(out).iloc[0]
        for column, start in (("answer", answer), ("target", target)):
            assert pd.isna(first[column]) if start is None else str(first[column]).startswith(start)
    _, err = said(capsys, "label", file, "-n", "30", "-o", out, "--force", "--columns", "response=words", code=2)
    assert "no such column" in err


def paired(folder: Path, n: int, lost: int, gained: int = 0) -> tuple[str, str]:
    """Write two tables of 0 and 1: the second is right on `lost` questions more, and wrong on `gained`."""
    files = []
    for name, right in (("new", range(lost, n // 2 + gained)), ("old", range(n // 2))):
        file = folder / f"{name}.csv"
        file.write_text("\n".join(["question,score", *(f"q{i},{int(i in right)}" for i in range(n))]))
        files.append(str(file))
    return files[0], files[1]


def test_a_gate_that_passes_a_small_loss_says_that_it_proves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = paired(tmp_path, 80, lost=3, gained=2)  # −1.25 points
    out, _ = said(capsys, "gate", new, "--against", old, "--margin", "1pt")
    beyond = "pass: no loss beyond the margin of 1 point is shown in 1 row, though the estimate is beyond it."
    assert f"{beyond} That is not proof that there is none: the rule no-loss asks for proof." in out
    assert "required −1.0" in out
    markdown, _ = said(capsys, "gate", new, "--against", old, "--margin", "1pt", "--format", "markdown")
    assert beyond in markdown  # the report of GitHub
    assert "though" not in said(capsys, "gate", new, "--against", old, "--margin", "2pt")[0]
    unallowed, _ = said(capsys, "gate", new, "--against", old)
    assert "pass: no loss is shown in 1 row, though the estimate is a loss. That is not proof" in unallowed
    assert "no loss is shown in 1 row. That is not proof" in said(capsys, "gate", old, "--against", new)[0]


def test_a_difference_is_said_in_the_direction_of_the_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = paired(tmp_path, 80, lost=20)
    out, _ = said(capsys, "compare", new, old)
    assert re.search(r"new is worse than old by 25\.0 points: \+15\.\d to \+34\.\d points", out)
    assert re.search(r"A − B −25\.0 points, 95% CI \[−34\.\d, −15\.\d\]", out)


def test_means_and_their_difference_add_up_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n, lost, gained, shown in (
        (40, 9, 7, "A 45% new B 50% old A − B −5 points"),
        (31, 4, 6, "A 54.8% new B 48.4% old A − B 6 points"),  # not 55%, 48% and 6
        (40, 7, 10, "A 58% new B 50% old A − B 8 points"),  # halves go up on both
    ):
        new, old = paired(tmp_path, n, lost, gained)
        assert shown in said(capsys, "compare", new, old)[0]
        assert (
            f"| {shown.split()[1]} | {shown.split()[4]} |"
            in said(capsys, "compare", new, old, "--format", "markdown")[0]
        )


def test_the_curve_of_checkpoints_is_the_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    each = [scores(tmp_path / f"step-{i}.csv", "question,score", "q{i},{x}", seed=i) for i in (100, 200, 300)]
    svg, _ = said(capsys, "arena", *each, "--over", "step", "--format", "svg")
    assert "<title>Checkpoints, table score</title>" in svg
    assert "<title>Means</title>" in said(capsys, "arena", *each, "--format", "svg")[0]
    assert "Leaderboard" not in said(capsys, "arena", *each, "--over", "step")[0]


def test_the_sentences_of_an_arena_say_which_may_be_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "\n".join(f"{task},q{{i}},{{x}}" for task in ("t0", "t1", "t2"))
    files = [scores(tmp_path / f"{name}.csv", "task,question,score", rows, seed=i) for i, name in enumerate("abc")]
    main(["arena", *files, "--format", "sentence"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" (")[0] for line in lines[:4]] == ["overall", "t0", "t1", "t2"]
    assert len(lines) == 6
    assert lines[4].startswith("overall: every task has the same weight")
    assert lines[5].startswith("3 models on 3 benchmarks (questions: t0 40, t1 40, t2 40)")


def test_slices_are_one_table_of_what_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [
        scores(tmp_path / f"{name}.csv", "question,topic,score", "q{i},{g},{x}", seed=7 * i)
        for i, name in enumerate("ab")
    ]
    command = ("compare", *files, "--by", "topic")
    out, _ = said(capsys, *command)
    assert "A − B 95% CI SE" in out
    assert not any(word in out for word in ("F*", "spread", "Do the slices differ? ", "What to do"))
    assert "the columns shrunken, shrunken CI; the table “Do the slices differ?”" in out
    details, _ = said(capsys, *command, "--details")
    assert all(word in details for word in ("F*", "shrunken CI", "Do the slices differ?", "What to do"))


def test_equal_scores_have_no_standard_error_of_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = tmp_path / "all-right.csv"
    right.write_text(
        "\n".join(["task,metric,question,score", *(f"t{i % 2},acc,q{i},{int(i % 2 or i % 3 > 0)}" for i in range(N))])
    )
    out, _ = said(capsys, "analyze", str(right))
    assert re.search(r"t1 100\.0% \[\S+%, 100\.0%\] Wilson, t 19 df – – 20 ", out)  # neither SE nor SE (1 answer)
    frame = hn.analyze(right).to_frame()
    assert frame["se"].iloc[1] == 0  # the number stays


def test_a_plan_of_labels_shows_labels_and_not_a_design(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ("label", "--plan", "--omega2", "0.2", "--r2", "0.6", "--target-se", "0.015", "--judged")
    out, _ = said(capsys, *plan, "1000")
    assert "with the judge's scores 762 standard error with these 0.0150 without a judge 889" in out
    assert "smallest detectable difference" not in out
    out, _ = said(capsys, *plan, "500")
    assert "labels of all 500 judged questions are not enough" in out
    assert "with the judge's scores 500 are not enough" in out
    assert "smallest detectable difference" in said(capsys, *plan, "1000", "--details")[0]


def test_an_unknown_measure_of_the_frontier_is_named_by_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [scores(tmp_path / f"{name}.csv", "question,score", "q{i},{x}", seed=i) for i, name in enumerate("ab")]
    _, err = said(capsys, "arena", *runs, "--frontier", "cost", code=2)
    assert "--frontier cost is not in this run" in err
    assert "--measure" not in err
    _, err = said(capsys, "arena", *runs, "--measure", "cost", code=2)
    assert "--measure cost is not in this run" in err
