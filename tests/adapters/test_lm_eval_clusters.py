"""Clusters, keys and texts of the questions of finished lm-eval runs."""

import shutil
from pathlib import Path

import pytest

import harness_noise as hn
from harness_noise.data.questions import content_hash
from harness_noise.errors import InputError
from harness_noise_adapters.lm_eval_harness.files import samples
from support.lm_eval_files import edit, one, results_file, samples_file, score
from support.notes import noted


def test_clusters_by_field_path_template_task_and_none(lm_eval_runs):
    folder = lm_eval_runs / "a"
    field = score(one(folder, cluster="template"), "mc", "acc")
    assert field.clusters[:4] == ("t0", "t0", "t0", "t1")
    assert field.cluster_spec == "template"
    path = score(one(folder, cluster="meta.source"), "mc", "acc")
    assert path.clusters[:4] == ("0", "0", "0", "1")
    mixed = one(folder, cluster="gen={{template}}-x,mc=none,mc*=task")
    assert score(mixed, "gen", "exact_match", "strict").clusters[3] == "t1-x"
    assert score(mixed, "mc", "acc").clusters is None
    assert set(score(mixed, "mc2", "acc").clusters) == {"mc2"}
    assert score(one(folder), "mc", "acc").clusters is None


def test_a_task_that_the_clusters_do_not_name_keeps_its_own(run_a):
    hn.export(run_a, in_place=True, cluster="gen=template,mc=template,mc2=none")
    run = one(run_a, cluster="mc=meta.source")
    assert score(run, "gen", "exact_match", "strict").cluster_spec == "template"
    assert (score(run, "mc", "acc").cluster_spec, score(run, "mc2", "acc").cluster_spec) == ("meta.source", None)
    hn.export(run_a, in_place=True, cluster="mc=none")
    again = one(run_a)
    assert score(again, "gen", "exact_match", "strict").clusters == score(run, "gen", "exact_match", "strict").clusters
    assert score(again, "mc", "acc").clusters is None


def test_a_missing_cluster_field_lists_the_fields(lm_eval_runs):
    with pytest.raises(InputError, match=r"samples_gen.*line 1: .*'passage'.*answer, choices, label, meta, question"):
        one(lm_eval_runs / "a", cluster="passage")


def test_auto_says_where_it_knows_nothing(lm_eval_runs):
    run = one(lm_eval_runs / "a", cluster="auto")
    assert score(run, "mc", "acc").clusters is None
    assert any("no natural cluster is known" in note for note in noted(run))


def test_a_natural_cluster_is_hinted_at_and_auto_uses_it(run_a):
    folder = results_file(run_a).parent
    samples_file(run_a, "mc").rename(folder / samples_file(run_a, "mc").name.replace("_mc_", "_drop_"))
    text = results_file(run_a).read_text().replace('"mc"', '"drop"')
    results_file(run_a).write_text(text)
    edit(
        samples_file(run_a, "drop"),
        lambda rows: [row | {"doc": row["doc"] | {"passage": row["doc"]["template"]}} for row in rows],
    )
    assert any("drop" in note and "passage" in note and "`cluster` auto" in note for note in noted(one(run_a)))
    part = score(one(run_a, cluster="auto", tasks=("drop",)), "drop", "acc")
    assert part.cluster_spec == "passage (auto)"
    assert len(set(part.clusters)) == 4


def test_parallel_tasks_share_their_clusters(run_a):
    folder = results_file(run_a).parent
    text = results_file(run_a).read_text()
    for old, new in (("mc", "xcopa_it"), ("mc2", "xcopa_sw")):
        samples_file(run_a, old).rename(folder / samples_file(run_a, old).name.replace(f"_{old}_", f"_{new}_"))
        text = text.replace(f'"{old}"', f'"{new}"')
    results_file(run_a).write_text(text)
    assert any("xcopa_" in note and "and 1 more" in note for note in noted(one(run_a)))
    run = one(run_a, cluster="auto")
    a, b = score(run, "xcopa_it", "acc"), score(run, "xcopa_sw", "acc")
    assert a.clusters[:9] == b.clusters
    assert a.cluster_spec == b.cluster_spec == "question across xcopa tasks (auto)"


def test_the_clusters_that_the_rows_carry(run_a):
    edit(samples_file(run_a, "mc"), lambda rows: [row | {"cluster": f"c{i // 4}"} for i, row in enumerate(rows)])
    part = score(one(run_a), "mc", "acc")
    assert part.clusters == tuple(f"c{i // 4}" for i in range(12))
    assert part.cluster_spec == "cluster"
    assert score(one(run_a, cluster="none"), "mc", "acc").clusters is None
    assert score(one(run_a, cluster="template"), "mc", "acc").clusters[0] == "t0"


def test_a_key_that_the_user_names(lm_eval_runs):
    part = score(one(lm_eval_runs / "a", columns={"question": "question"}), "mc", "acc")
    assert part.questions.kind == "question"
    assert part.questions.keys[0] == "Item 0 x: add 3 and 2 ?"
    assert part.questions.inputs is None  # the name alone decides
    with pytest.raises(InputError, match=r"question field 'nope' is not in the document"):
        one(lm_eval_runs / "a", columns={"question": "nope"})


def test_only_the_tasks_that_are_asked_for_are_read(run_a):
    samples_file(run_a, "gen").write_text("not JSON\n")
    assert {part.task for part in one(run_a, tasks=("mc*",)).scores} == {"mc", "mc2", "mc3"}
    assert {part.task for part in one(run_a, tasks=("inner",)).scores} == {"mc2", "mc3"}
    with pytest.raises(InputError, match="line 1: not JSON"):
        one(run_a)


def test_named_groups(lm_eval_runs):
    run = one(lm_eval_runs / "a", groups={"choice": "mc?"})
    assert {(g.metric, *sorted(g.tasks)) for g in run.groups if g.name == "choice"} == {
        ("acc", "mc2", "mc3"),
        ("acc_norm", "mc2", "mc3"),
        ("acc_prob", "mc2", "mc3"),
    }
    with pytest.raises(InputError, match=r"matches no task of this run. There are .*mc3"):
        one(lm_eval_runs / "a", groups={"x": "nothing*"})
    with pytest.raises(InputError, match="no metric in common"):
        one(lm_eval_runs / "a", groups={"x": "*"})


def test_question_texts_for_people_and_other_harnesses(lm_eval_runs):
    questions = score(one(lm_eval_runs / "a"), "mc", "acc").questions
    assert questions.texts[0] == "Item 0 x: add 3 and 2 ?"
    assert questions.inputs[0] == content_hash("Item 0 x: add 3 and 2 ?")


def test_question_text_rule():
    text = samples.question_text
    assert text({"question": "q", "passage": "p"}) == "p\nq"
    assert text({"query": "x", "question": " "}) == "x"
    assert text({"question": ["a"], "problem": "x"}) == "x"
    assert text({"answer": "a"}) is None


def test_a_field_of_the_documents_that_contains_the_clusters_is_named(shared_data, tmp_path):
    folder = Path(shutil.copytree(shared_data / "lm_eval" / "asdiv", tmp_path / "run"))

    def told(rows):
        for i, row in enumerate(rows):
            row["doc"] |= {"passage": f"p{i // 2}", "article": f"a{i // 8}"}
            row["acc"] = float(i // 8 % 2)
        return rows

    edit(samples_file(folder, "asdiv"), told)
    assert score(one(folder, cluster="passage"), "asdiv", "acc").outer == {
        "article": {f"p{i}": f"a{i // 4}" for i in range(25)}
    }
    found = hn.analyze(folder, cluster="passage")
    assert "inner_clusters" in found.rows[0].diagnostics
    assert any("lies within one value of 'article'" in note for note in noted(found))
    assert not score(one(folder), "asdiv", "acc").outer
