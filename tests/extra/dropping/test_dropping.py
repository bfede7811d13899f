"""Who may be dropped: looks at many models that answer one order of questions."""

import csv
import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.drawing import with_record
from harness_noise.cli import main
from harness_noise.errors import InputError
from harness_noise.extra.boundaries import critical_values, normal_z, stagewise_shifts, student_t
from harness_noise.extra.stopping.rules import StoppingRule

N = 400
RATES = {"a": 0.7, "b": 0.68, "c": 0.5, "d": 0.35}
RNG = np.random.default_rng(3)
PLACE = RNG.permutation(N) + 1
RIGHT = {name: (RNG.random(N) < rate).astype(int) for name, rate in RATES.items()}


def write(folder, name, k, *, order=True, place=PLACE, lost=(), task=""):
    """The table of a model that has answered the first k questions of the order."""
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["question", "score", *(["order"] if order else []), *(["task"] if task else [])])
        for i in np.flatnonzero(place <= k):
            value = "" if i in lost else RIGHT[name][i]
            out.writerow([f"q{i}", value, *([place[i]] if order else []), *([task] if task else [])])
    return str(path)


@pytest.fixture
def runs(tmp_path):
    return [write(tmp_path, name, 100) for name in RATES]


def rows(found):
    return {row.model: row for row in found.models}


class TestReplay:
    def test_a_drop_is_a_pair_beyond_its_boundary(self):
        """By hand: two models, one answer each, the t statistic of every look against Hwang–Shih–DeCani's boundary."""
        found = rows(hn.drop_in_sequence([RIGHT["a"], RIGHT["c"]], seed=4))
        order = StoppingRule(looks=20, seed=4).order(N)
        for look in range(1, 21):
            at = order.question[: order.ends[look - 1]]
            d = RIGHT["c"][at] - RIGHT["a"][at]
            n, se = len(d), d.std(ddof=1) / np.sqrt(len(d))
            more = np.append(d, 1)  # one question in favour of the one that is behind
            other = -(more.mean() / np.sqrt(se**2 * (n / (n + 1)) ** 2 + ((1 - d.mean()) / (n + 1)) ** 2))
            z = min(normal_z(-d.mean() / se, n - 1), normal_z(other, n))
            bounds = critical_values([end / N for end in order.ends[:look]], 0.1)
            if z >= bounds[-1]:
                break
        assert (found["2"].dropped_at, found["2"].n_questions, found["2"].behind) == (look, n, "1")
        assert found["1"].goes_on
        low, middle, high = stagewise_shifts(-z, [end / N for end in order.ends[:look]], bounds, 0.9)
        expected = [d.mean() - se * student_t(shift, n - 1) for shift in (middle, low, high)]
        assert [found["2"].diff, found["2"].diff_low, found["2"].diff_high] == pytest.approx(expected)
        assert found["2"].level == pytest.approx(0.9)

    def test_the_error_is_shared_by_the_rivals_of_the_first_look(self):
        found = hn.drop_in_sequence([*RIGHT.values()], seed=1)
        assert all(row.level == pytest.approx(1 - 0.1 / 3) for row in found.models)
        assert [row.model for row in found.models if not row.goes_on] == ["3", "4"]

    def test_lower_is_better_is_the_mirror(self):
        up = hn.drop_in_sequence([*RIGHT.values()], seed=1)
        down = hn.drop_in_sequence([1 - x for x in RIGHT.values()], seed=1, higher_is_better=False)
        assert [(x.model, x.dropped_at) for x in up.models] == [(x.model, x.dropped_at) for x in down.models]
        assert [x.diff for x in up.models] == pytest.approx([-x.diff for x in down.models])

    def test_all_questions_are_asked_once_before_any_twice(self):
        rng = np.random.default_rng(5)
        p = np.clip(rng.beta(1, 1, 60) + np.array([[0.05], [-0.35]]), 0, 1)
        found = rows(hn.drop_in_sequence((rng.random((5, 2, 60)) < p).transpose(1, 2, 0), seed=0))
        assert found["2"].dropped_at is not None
        assert found["2"].n_questions == 60 or found["2"].n_answers == found["2"].n_questions
        assert found["2"].asked == found["2"].n_answers / 300

    def test_questions_that_a_model_lacks_do_not_count(self):
        scores = np.array([RIGHT["a"], RIGHT["b"], RIGHT["d"]], dtype=float)
        scores[0, :40] = np.nan
        found = hn.drop_in_sequence(scores, seed=2)
        last = [row for row in found.models if row.goes_on]
        assert {row.n_questions for row in last} == {N - 40}
        assert rows(found)["3"].dropped_at is not None

    def test_the_share_of_the_answers_is_that_of_all_models_together(self):
        """Models with unequal numbers of answers, and answers without a score, which were asked, too."""
        rng = np.random.default_rng(6)
        scores = (rng.random((2, 300, 5)) < np.array([0.9, 0.5])[:, None, None]).astype(float)
        scores[1, :, 1:] = np.nan
        found = hn.drop_in_sequence(scores)
        assert found.share_asked == pytest.approx(sum(row.n_answers for row in found.models) / (5 * 300 + 300))
        assert found.share_asked != pytest.approx(np.mean([row.asked for row in found.models]))
        holes = np.array([RIGHT["a"], RIGHT["a"]], dtype=float)
        holes[0, :40], holes[1, 40:80] = np.nan, np.nan
        whole = hn.drop_in_sequence(holes)
        assert [row.asked for row in whole.models] == [1.0, 1.0]  # 80 questions that one of them lacks were asked
        assert whole.share_asked == 1.0
        assert {row.n_answers for row in whole.models} == {N - 80}

    def test_too_few_questions_that_all_have_answered(self):
        scores = np.full((2, 100), np.nan)
        scores[0, :52], scores[1, 48:] = RIGHT["a"][:52], RIGHT["b"][48:100]
        for few in (scores, np.array([RIGHT["a"], np.full(N, np.nan)])):
            with pytest.raises(InputError, match=r"7 questions .* that all models have answered, and these have fewer"):
                hn.drop_in_sequence(few)

    def test_equal_models_and_single_clusters_go_on(self):
        found = hn.drop_in_sequence(np.ones((3, 40)))
        assert [row.dropped_at for row in found.models] == [None] * 3
        assert {row.diff for row in found.models} == {0.0}
        with pytest.raises(InputError, match="too few to stop before the end"):
            hn.drop_in_sequence(np.random.default_rng(1).random((2, 30)), np.arange(30) // 6)

    def test_a_rare_success_that_has_not_come_yet_drops_nobody(self):
        """All but the best score 0.02 on each question; the best succeeds once in fifty."""
        scores = np.full((2, 100), 0.02)
        scores[0] = 0.0
        assert hn.drop_in_sequence(scores, range=(0, 1)).models[0].goes_on
        assert all(row.goes_on for row in hn.drop_in_sequence(scores[:, :40], range=(0, 1)).models)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"looks": 1}, "from 2 to 50"),
            ({"looks": "anytime"}, "from 2 to 50"),
            ({"margin": 0.1}, "margin"),
        ],
    )
    def test_refused(self, arguments, words):
        with pytest.raises(InputError, match=words):
            hn.drop_in_sequence([RIGHT["a"], RIGHT["b"]], **arguments)

    @pytest.mark.parametrize(
        ("typed", "words"),
        [
            (["--n", "0"], "--n is about --looks"),
            (["--looks", "5", "--n", "0"], "--n 0 is not a whole number"),
            (["--looks", ""], "from 2 to 50"),
        ],
    )
    def test_an_empty_value_is_no_absent_one(self, typed, words, tmp_path, capsys):
        """A 0 or an empty text was passed over in silence, and an arena without looks was computed."""
        files = [str(tmp_path / f"{name}.csv") for name in "ab"]
        for file in files:
            Path(file).write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(60)))
        assert main(["arena", *files, *typed]) == 2
        assert words in capsys.readouterr().err

    def test_one_model_is_refused(self):
        with pytest.raises(InputError, match="two at least"):
            hn.drop_in_sequence([RIGHT["a"]])


class TestRunsThatGrow:
    def test_look_by_look_with_the_commands_to_type(self, runs, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        runs = [Path(path).name for path in runs]
        typed = ["arena", *runs, "--looks", "20", "--n", str(N)]
        assert main(typed) == 0
        said = capsys.readouterr().out
        assert "look 1 of 20: 3 of 4 models go on: a, b, c. No longer asked: d (behind a at look 1)." in " ".join(
            said.split()
        )
        assert "ask a, b, c the questions 101 to 120 of the order" in said
        assert f"harness-noise arena {' '.join(runs)} --looks 20 --n 400" in said
        assert main(typed) == 0  # the same answers are the same look
        assert capsys.readouterr().out == said
        for name in "abc":
            write(tmp_path, name, N)
        assert main([*typed, "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["look"], found["looks"]) == (2, 20)
        assert {row["model"]: (row["dropped_at"], row["asked"]) for row in found["models"]} == {
            "a": (None, 1), "b": (None, 1), "c": (2, 1), "d": (1, 0.25),
        }  # fmt: skip
        assert found["next_steps"] == [f"harness-noise arena {runs[0]} {runs[1]}"]
        assert found["share_asked"] == pytest.approx(3.25 / 4)

    def test_dropped_runs_need_not_be_given_again(self, runs, tmp_path):
        first = rows(hn.drop_models(runs, n=N))
        for name in "abc":
            write(tmp_path, name, 200)
        again = rows(hn.drop_models(runs[:3], n=N))
        assert again["d"] == first["d"]
        assert again["a"].n_questions == 200

    def test_questions_that_all_who_go_on_have_answered_count(self, runs, tmp_path):
        write(tmp_path, "b", 140, lost=[int(np.flatnonzero(PLACE == 7)[0])])
        found = rows(hn.drop_models(runs, n=N))
        assert {row.n_questions for row in found.values()} == {99}

    def test_complete_runs_are_replayed_and_nothing_is_written(self, tmp_path):
        runs = [write(tmp_path, name, N, order=False) for name in RATES]
        found = hn.drop_models(runs, seed=1)
        assert [note.code for note in found.notes if note.code == "replayed"] == ["replayed"]
        assert {row.model: row.dropped_at for row in found.models} == {
            "abcd"[int(row.model) - 1]: row.dropped_at for row in hn.drop_in_sequence([*RIGHT.values()], seed=1).models
        }
        assert not list(tmp_path.glob("*.json"))

    def test_the_order_of_a_harness_is_its_seed(self, tmp_path):
        """Runs that drew a part, of any harness, with the seed in their record."""
        every = {}
        for name in "ab":
            run = hn.read(write(tmp_path, name, 100, order=False))[0]
            record = {"task": run.scores[0].task, "n_asked": 100, "n_total": N, "order_seed": 7, "stopped_early": False}
            every[name] = with_record(replace(run, harness="lm-eval", path=str(tmp_path / name)), [], [record])
        found = hn.drop_models([*every.values()])
        assert found.models[0].n_total == N
        assert found.next_steps[0].endswith("--noise --noise_sample 120 --noise_seed 7   (a, b)")
        other = with_record(every["b"], [], [every["b"].drawn[0] | {"order_seed": 8}])
        for path in tmp_path.glob("*.looks.json"):
            path.unlink()
        with pytest.raises(InputError, match=r"different orders \(a seed 7, b seed 8\)"):
            hn.drop_models([every["a"], other])
        early = with_record(every["b"], [], [every["b"].drawn[0] | {"stopped_early": True}])
        with pytest.raises(InputError, match="b stopped early by itself"):
            hn.drop_models([every["a"], early])

    def test_clusters_are_asked_whole(self, tmp_path):
        runs = [write(tmp_path, name, 100) for name in "ad"]
        for path in map(Path, runs):
            first, *lines = path.read_text().splitlines()
            more = [f"{line},p{int(line.split(',')[0][1:]) // 4}" for line in lines]
            path.write_text("\n".join([f"{first},passage", *more]) + "\n")
        plain = rows(hn.drop_models(runs, n=N))
        for path in tmp_path.glob("*.looks.json"):
            path.unlink()
        by_passage = rows(hn.drop_models(runs, n=N, cluster="passage"))
        assert by_passage["d"].diff_low != plain["d"].diff_low

    def test_a_question_without_a_score_was_asked(self, runs, tmp_path):
        """It counts in no look, and nobody is sent to ask it again."""
        seventh = int(np.flatnonzero(PLACE == 7)[0])
        write(tmp_path, "b", 100, lost=[seventh])
        found = hn.drop_models(runs, n=N)
        assert found.next_steps[0] == "ask a, b, c the questions 101 to 120 of the order"
        write(tmp_path, "c", 110, lost=[seventh])
        assert hn.drop_models(runs, n=N).models[0].n_questions == 99
        for name in "abc":
            write(tmp_path, name, N, lost=[seventh] if name == "b" else [])
        assert [*hn.drop_models(runs, n=N).next_steps] == [f"harness-noise arena {runs[0]} {runs[1]}"]

    def test_complete_runs_without_some_scores_are_replayed(self, tmp_path):
        runs = [write(tmp_path, name, N, order=False, lost=[ord(name), 3]) for name in RATES]
        found = hn.drop_models(runs)
        assert "replayed" in {note.code for note in found.notes}
        assert found.next_steps == ()
        assert not list(tmp_path.glob("*.json"))

    def test_the_command_to_type_has_what_was_typed(self, runs, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for path in map(Path, runs):
            first, *lines = path.read_text().splitlines()
            path.write_text(
                "\n".join([f"{first},the passage", *(f"{x},p{i // 2}" for i, x in enumerate(lines))]) + "\n"
            )
        choices = ["--cluster", "the passage", "--level", "0.9", "--range", "-1,1", "--only", "the passage != p1"]
        choices += ["--columns", "question=question", "--metric", "score", "--missing", "zero", "--se", "cr1"]
        assert main(["arena", *runs, "--looks", "20", "--n", str(N), *choices, "--format", "json"]) == 0
        first = json.loads(capsys.readouterr().out)
        typed = shlex.split(first["next_steps"][-1])
        assert main([*typed[1:], "--format", "json"]) == 0  # it is the same look, with the same command
        assert json.loads(capsys.readouterr().out) == first

    def test_more_looks_than_were_planned(self, runs, tmp_path):
        for k in (100, 110, 120):
            for name in "ab":
                write(tmp_path, name, k)
            found = hn.drop_models(runs[:2], n=N, looks=2)
        assert "look 3 (2 were planned): " in found.sentence

    def test_one_model_goes_on(self, runs):
        found = hn.drop_models([runs[0], runs[3]], n=N)
        assert "1 of 2 models goes on: a." in found.sentence


class TestRefused:
    """Each in one paragraph that says what to type."""

    @pytest.mark.parametrize(
        ("name", "value"),
        [("chance", 0.25), ("weights", "size"), ("test", "sign"), ("interval", "wilson"), ("margin", 0.05)],
    )
    def test_a_setting_that_looks_do_not_obey(self, runs, name, value):
        with pytest.raises(InputError, match=f"no use for `{name}`"):
            hn.drop_models(runs, n=N, settings=hn.Settings(**{name: value}))

    @pytest.mark.parametrize(("name", "value"), [("missing", "zero"), ("margin", 0.05)])
    def test_a_setting_that_a_replay_does_not_obey(self, name, value):
        with pytest.raises(InputError, match=f"no use for `{name}`"):
            hn.drop_in_sequence([RIGHT["a"], RIGHT["c"]], settings=hn.Settings(**{name: value}))

    def refused(self, *words, **choices):
        def check(runs):
            with pytest.raises(InputError) as error:
                hn.drop_models(runs, **{"n": N} | choices)
            assert all(word in str(error.value) for word in words), error.value
            assert "\n" not in str(error.value)

        return check

    def test_no_order_is_recorded(self, runs, tmp_path):
        runs[1] = write(tmp_path, "b", 100, order=False)
        self.refused("b has answered a part of 400 questions, and no order", "--noise_seed 1", "column `order`")(runs)

    def test_another_order(self, runs, tmp_path):
        text = (tmp_path / "b.csv").read_text()
        (tmp_path / "b.csv").write_text(text.replace(",7\n", ",8.5\n"))
        self.refused("is number 8.5 of the order here, and number 7 in another run")(runs)

    def test_other_questions(self, runs, tmp_path):
        place = np.where(PLACE == 50, 1000, PLACE)
        runs[1] = write(tmp_path, "b", 100, place=place)
        write(tmp_path, "a", 90)
        self.refused("a and b were asked different questions: 1 of a's 90 are not among b's 99")(runs)

    def test_a_model_that_comes_later(self, runs):
        hn.drop_models(runs[:3], n=N)
        self.refused("d: not there at the first look", "starts a new family")(runs)

    def test_a_model_that_goes_on_and_is_not_given(self, runs):
        hn.drop_models(runs, n=N)
        self.refused("c: still asked at the last look", "name all runs that go on")(runs[:2])

    def test_of_two_runs_that_share_a_name_one_is_left_out(self, tmp_path):
        """Their names have their folders, and a name alone may be of either."""
        places = []
        for folder, name in (("x", "a"), ("y", "d"), ("z", "b")):
            (tmp_path / folder).mkdir()
            lines = Path(write(tmp_path / folder, name, 100)).read_text().splitlines()
            (path := tmp_path / folder / "s.csv").write_text(
                "\n".join(
                    [f"{lines[0]},model", *(f"{line},{'other' if name == 'b' else 'same'}" for line in lines[1:])]
                )
            )
            places.append(str(path))
        hn.drop_models(places, n=N)
        self.refused("same (x): still asked at the last look", "of two that share a model's name both")(places[::2])

    @pytest.mark.parametrize(
        "choice",
        [{"looks": 10}, {"level": 0.9}, {"se": "cr1"}, {"n": 200}, {"range": (-1, 1)}, {"only": ["order >= 0"]}],
    )
    def test_other_choices_than_at_the_first_look(self, runs, choice):
        hn.drop_models(runs, n=N)
        self.refused("the looks before were taken with", "start again", **choice)(runs)

    def test_runs_that_have_shrunk(self, runs, tmp_path):
        hn.drop_models(runs, n=N)
        write(tmp_path, "a", 90)
        self.refused("90 questions are answered", "100 were at the last look")(runs)

    def test_runs_whose_scores_have_changed(self, runs, tmp_path, monkeypatch):
        hn.drop_models(runs, n=N)
        monkeypatch.setitem(RIGHT, "b", 1 - RIGHT["b"])
        write(tmp_path, "b", 100)
        self.refused("b: its mean over the 100 questions of the last look was", "made or scored again")(runs)

    def test_several_tasks(self, tmp_path):
        runs = []
        for name in "ab":
            (tmp_path / name).mkdir()
            path = tmp_path / name / "t.csv"
            lines = [f"q{i},{RIGHT[name][i]},{PLACE[i]},{'xy'[i % 2]},{name}" for i in range(100)]
            path.write_text("question,score,order,task,model\n" + "\n".join(lines) + "\n")
            runs.append(str(path))
        self.refused("decided by one score, and the runs have 2", "`tasks`", "`groups`", n=None)(runs)
        assert hn.drop_models(runs, tasks=["x"]).models[0].task == "x"
        assert hn.drop_models(runs, groups={"both": "*"}).models[0].task == "both"

    def test_a_broken_file_of_looks(self, runs, tmp_path):
        hn.drop_models(runs, n=N)
        (tmp_path / "a.csv.arena.looks.json").write_text('{"kind": "arena looks"}')
        self.refused("a.csv.arena.looks.json: not the looks at many models", "start again")(runs)

    def test_too_few_questions_for_a_look(self, tmp_path):
        self.refused("a first look needs 7 questions")([write(tmp_path, name, 6) for name in RATES])

    def test_fewer_than_were_answered(self, runs):
        self.refused("`n` 50: the runs have answered 100 questions", n=50)(runs)

    def test_in_memory_while_it_grows(self, runs):
        import pandas as pd

        frames = {name: pd.read_csv(path) for name, path in zip(RATES, runs, strict=True)}
        self.refused("kept next to them", "local files")(frames)

    @pytest.mark.parametrize(
        ("typed", "words"),
        [
            (["--n", "400"], "--n is about --looks"),
            (["--looks", "20", "--select"], "no use for --select"),
            (["--looks", "20", "--against", "a"], "no use for --against"),
            (["--looks", "20", "--test", "sign"], "no use for --test"),
            (["--looks", "20", "--n", "400", "--html", "x"], "write_html accepts"),
        ],
    )
    def test_on_the_command_line(self, runs, typed, words, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["arena", *runs, *typed]) == 2
        assert words in capsys.readouterr().err
