"""Answers that score 0 because they are empty, or because nothing could be parsed out of them."""

import json
import random

import pytest

import harness_noise as hn

N = 120


def said(run):
    return [note.as_text() for note in hn.analyze(run).notes if note.code == "unread"]


def lm_eval_run(folder, K=1, answers=lambda draw: draw.choice(["#### 4", "#### 5", "I think so", "", " \n"]), **change):
    """A generated task under two filters, one of which reads only what stands behind ####; returns its rows."""
    lines = []
    for scorer in ("strict-match", "flexible-extract"):
        draw = random.Random(0)
        for i in range(N):
            texts = [answers(draw) for _ in range(K)]
            parsed = [text[5:] if text.startswith("####") else "[invalid]" for text in texts]
            parsed = parsed if scorer == "strict-match" else [text.strip()[-1:] for text in texts]
            scores = [float(text == "4") for text in parsed]
            row = {
                "doc_id": i, "doc": {"question": f"Question {i}?"}, "target": "4",
                "arguments": {"gen_args_0": {"arg_0": f"Q: {i}?", "arg_1": {"until": []}}}, "resps": [texts],
                "filtered_resps": parsed, "filter": scorer, "metrics": ["exact_match"], "doc_hash": f"{i:064x}",
                "prompt_hash": f"{i:064x}", "target_hash": "0" * 64, "exact_match": scores[0],
            }  # fmt: skip
            lines.append(row | ({"scores_per_repeat": {"exact_match": scores}} if K > 1 else {}) | change)
    (folder / "samples_t_2026-01-01T00-00-00.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    return lines


def expected(rows, scorer):
    """Zeros, and those without a text or without what the filter looks for, counted from the rows."""
    zeros = blank = 0
    for row in rows:
        scores = row.get("scores_per_repeat", {}).get("exact_match", [row["exact_match"]])
        for text, parsed, score in zip(row["resps"][0], row["filtered_resps"], scores, strict=True):
            if row["filter"] == scorer and score == 0:
                zeros += 1
                blank += not text.strip() or parsed in ("", "[invalid]")
    return zeros, blank


@pytest.mark.parametrize("K", [1, 3])
def test_lm_eval_answers_without_a_match_are_counted(tmp_path, K):
    rows = lm_eval_run(tmp_path, K)
    (text,) = said(tmp_path)
    for scorer in ("strict-match", "flexible-extract"):
        zeros, blank = expected(rows, scorer)
        assert 0 < blank < zeros
        assert f"{scorer} {blank} of {zeros}" in text


def test_the_count_is_the_same_if_the_line_is_decoded_whole(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    lm_eval_run(tmp_path / "a")
    lm_eval_run(tmp_path / "b", more={"resps": 1})
    assert said(tmp_path / "a") == said(tmp_path / "b") != []


def test_answers_that_are_all_read_get_no_note(tmp_path):
    lm_eval_run(tmp_path, answers=lambda draw: draw.choice(["#### 4", "#### 5"]))
    assert said(tmp_path) == []


def test_no_metric_of_which_less_is_better_has_such_zeros(tmp_path):
    lm_eval_run(tmp_path)
    results = {
        "results": {"t": {"exact_match,strict-match": None}}, "configs": {"t": {"output_type": "generate_until"}},
        "higher_is_better": {"t": {"exact_match": False}},
    }  # fmt: skip
    (tmp_path / "results_2026-01-01T00-00-00.json").write_text(json.dumps(results))
    assert said(tmp_path) == []


def test_choices_have_no_texts_that_could_be_empty(tmp_path):
    lm_eval_run(tmp_path, resps=[[["-1.0", "False"]], [["-2.0", "False"]]], filtered_resps=[["-1.0", "False"]] * 2)
    assert said(tmp_path) == []


class TestInspect:
    @pytest.fixture
    def log_of(self, canned, tmp_path):
        def make(scorer, words):
            draw = random.Random(1)
            task = canned.task(canned.samples(40), scorer=scorer, answer=lambda state: draw.choice(words))
            (log,) = canned.eval(task, tmp_path)
            return log

        return make

    def test_answers_that_the_scorer_could_not_read_are_counted(self, log_of):
        from inspect_ai.scorer import pattern

        log = log_of(pattern(r"ANSWER: (\w+)"), ["ANSWER: yes", "ANSWER: no", "so it is", ""])
        scores = [sample.scores["pattern"] for sample in log.samples]
        zeros = [score for score in scores if score.value == "I"]
        blank = [score for score in zeros if not score.answer]
        (text,) = said(log.location)
        assert 0 < len(blank) < len(zeros)
        assert f"pattern {len(blank)} of {len(zeros)}" in text

    def test_a_scorer_that_never_names_an_answer_says_nothing(self, log_of):
        from inspect_ai.scorer import Score, accuracy, scorer

        @scorer(metrics=[accuracy()])
        def silent():
            async def score(state, target):
                return Score(value="C" if state.output.completion == "yes" else "I")

            return score

        assert said(log_of(silent(), ["yes", "no"]).location) == []


def test_the_count_says_that_it_is_of_all_questions_when_only_some_are_asked_for(tmp_path):
    lm_eval_run(tmp_path, doc={"question": "Which?", "kind": "x"})
    rows = [json.loads(line) for line in next(tmp_path.glob("samples_*")).read_text().splitlines()]
    for row in rows:
        row["doc"] = {"question": f"Question {row['doc_id']}?", "kind": "ab"[row["doc_id"] % 2]}
    next(tmp_path.glob("samples_*")).write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = hn.analyze(tmp_path, only=["kind = a"])
    assert {row.n_questions for row in found.estimates} == {N // 2}
    (text,) = (note.as_text() for note in found.notes if note.code == "unread")
    assert text.endswith("(counted over all questions, without `only`)")
    assert not any("without `only`" in note.as_text() for note in hn.analyze(tmp_path).notes)
