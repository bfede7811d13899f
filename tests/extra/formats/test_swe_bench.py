"""SWE-bench's reports: instances are questions, repositories clusters; lost infrastructure is no wrong answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harness_noise as hn
from harness_noise import InputError
from harness_noise.extra.testing.adapters import check_adapter
from harness_noise_adapters.extra.formats.swe_bench import adapter
from support.commands import refused
from support.notes import noted

IDS = [f"{repository}-{i}" for repository in ("django__django", "scikit-learn__scikit-learn") for i in range(10, 16)]


def report(**lists: list[str]) -> dict[str, Any]:
    """A run report: five solved, and of the rest one each of what can go wrong."""
    lists = {
        "incomplete": IDS[11:], "empty_patch": IDS[10:11], "resolved": IDS[:5], "unresolved": IDS[5:9],
        "error": IDS[9:10], "infra_failure": IDS[8:9], "ambiguous_failure": IDS[7:8], "completed": IDS[:9],
        "submitted": IDS[:11],
    } | lists  # fmt: skip
    counts = {f"{name}_instances": len(ids) for name, ids in lists.items()}
    return {"total_instances": len(IDS), **counts, **{f"{name}_ids": ids for name, ids in lists.items()}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "org__sim-4.1.first.json"
    path.write_text(json.dumps(report(), indent=4))
    return path


def test_what_every_adapter_promises(path: Path, tmp_path: Path) -> None:
    solved = {
        ("swe-bench", IDS[i]): [value] for i, value in ((0, 1.0), (5, 0.0), (8, None), (9, 0.0), (10, 0.0), (11, None))
    }
    check_adapter(
        adapter,
        path,
        tmp_path / "work",
        cluster="repository",
        question="instance_id",
        factor="outcome",
        models=["org__sim-4.1"],
        expected=solved,
    )


def test_clusters_are_repositories_and_what_failed_for_other_reasons_is_missing(path: Path) -> None:
    row = hn.analyze(path, cluster="auto").estimates[0]
    assert (row.mean, row.n_questions, row.n_clusters) == (0.5, 10, 2)
    assert row.missing == {"infrastructure": 1, "unanswered": 1}
    assert hn.analyze(path, missing="zero").estimates[0].mean == 5 / 12
    assert "mean_mismatch" not in row.diagnostics


def test_two_runs_of_a_model_are_repeats_where_asked(path: Path) -> None:
    path.with_name("org__sim-4.1.second.json").write_text(
        json.dumps(report(resolved=IDS[1:5], unresolved=[*IDS[5:9], IDS[0]]))
    )
    assert len(hn.analyze(path.parent).estimates) == 2
    (row,) = hn.analyze(path.parent, as_repeats=True).estimates
    assert row.repeats_max == 2


def test_folders_of_instance_reports_pro_results_and_details(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "run_evaluation" / "first" / "sim-a"
    for i, name in enumerate(IDS):
        (logs / name).mkdir(parents=True)
        if i:
            found = {name: {"patch_is_None": False, "patch_successfully_applied": True, "resolved": i % 2 == 0}}
            (logs / name / "report.json").write_text(json.dumps(found))
    (run,) = hn.read(logs)
    assert (run.model, run.scores[0].values.sum()) == ("sim-a", 5)
    assert any("1 instances have no report.json" in note for note in noted(run))
    pro = tmp_path / "pro" / "sim-b" / "eval_results.json"
    pro.parent.mkdir(parents=True)
    hashed = f"{'0a' * 20}-v{'1b' * 20}"
    pro.write_text(json.dumps({f"instance_org__repo-{i}{hashed}": i < 3 for i in range(4)}))
    (run,) = hn.read(pro, cluster="auto")
    assert (run.model, set(run.scores[0].clusters), run.scores[0].values.mean()) == ("sim-b", {"org__repo"}, 0.75)
    details = tmp_path / "20250101_sim-c" / "results"
    details.mkdir(parents=True)
    lists = {"no_generation": [], "no_logs": [], "resolved": IDS[:3]}
    (details / "results.json").write_text(json.dumps(lists))
    for place in (details.parent, details / "results.json"):
        with pytest.raises(InputError, match=r"not those that were tried\. Give the run"):
            hn.read(place)
    known = {name: {"cost": 0.5 + i, "resolved": i < 3} for i, name in enumerate(IDS)}
    (details / "per_instance_details.json").write_text(json.dumps(known))
    (run,) = hn.read(details.parent, fields=["cost"])
    assert (run.model, run.scores[0].values.mean()) == ("20250101_sim-c", 0.25)
    assert run.scores[0].questions.fields.values["cost"][1] == 1.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps(report())[:300], "not JSON"),
        (json.dumps(report(unresolved=IDS[:2])), "is listed as solved and as not solved"),
        (json.dumps(report() | {"resolved_ids": 5}), "counts where the instances should be listed"),
        (json.dumps(report() | {"resolved_ids": [None]}), "counts where the instances should be listed"),
        (json.dumps(report() | {"resolved_instances": 9}), "9 solved instances are counted and 5 listed"),
        (json.dumps(report())[:-1] + ', "resolved_ids": []}', "'resolved_ids' is in one of its objects twice"),
        (json.dumps({"total_instances": 3}), "it lists no instance"),
    ],
)
def test_a_report_that_cannot_be_used_is_refused_in_one_paragraph(
    path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(text)
    refused(path, capsys, words)


@pytest.mark.parametrize(
    "told",
    [
        {"no_generation": IDS[:1], "generated": IDS[1:], "resolved": IDS[1:4]},
        {f"instance_{name}": i < 3 for i, name in enumerate(IDS)},
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_report(tmp_path: Path, told: dict[str, object]) -> None:
    path = tmp_path / "m.run.json"
    path.write_text(json.dumps(told), encoding="utf-8-sig")
    (run,) = hn.read(path)
    assert (run.harness, run.scores[0].values.sum()) == ("swe-bench", 3)


def test_a_report_that_lists_fewer_instances_than_it_counts_is_read_with_a_note(path: Path) -> None:
    path.write_text(json.dumps(report() | {"total_instances": 300}))
    assert any("of 300 instances 12 are listed" in note for note in noted(hn.analyze(path)))


def test_a_report_of_the_service_names_its_run_and_what_it_did_not_grade(tmp_path: Path) -> None:
    """sb-cli: runs that failed or still wait were not graded; its name says the run, which may have dots."""
    lists = {"infra_failure": [], "ambiguous_failure": [], "unresolved": IDS[5:8], "error": []}
    told = report(**lists, failed=IDS[8:9], pending=IDS[9:10])
    for run in ("sim-4.1", "sim-4.5"):
        (tmp_path / f"swe-bench_verified__test__{run}.json").write_text(json.dumps(told))
    rows = hn.analyze(tmp_path).estimates
    assert [row.model for row in rows] == ["swe-bench_verified__test__sim-4.1", "swe-bench_verified__test__sim-4.5"]
    for row in rows:
        assert (row.mean, row.n_questions) == (5 / 9, 9)
        assert row.missing == {"infrastructure": 1, "verifier": 1, "unanswered": 1}
        assert "mean_mismatch" not in row.diagnostics


def test_a_submission_that_lists_all_it_tried_is_a_report(tmp_path: Path) -> None:
    """Multi-SWE-bench: `results/results.json` in a folder of the model's name, whose solved ones are `resolved`."""
    told = report(infra_failure=[])
    path = tmp_path / "20240825_sim" / "results" / "results.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**told, "resolved": told.pop("resolved_ids")}))
    (row,) = hn.analyze(path).estimates
    assert (row.model, row.mean, row.n_questions) == ("20240825_sim", 5 / 11, 11)
    assert "mean_mismatch" not in row.diagnostics


def test_links_that_lead_out_are_left_out(tmp_path):
    """Also into a hub of models, which is none of the folder that was named."""
    place, away = tmp_path / "place", tmp_path / "away"

    def report(folder, name):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(
            json.dumps({name: {"patch_successfully_applied": True, "resolved": name[-1] != "2"}})
        )

    for i in (1, 2):
        report(place / f"r__r-{i}", f"r__r-{i}")
    report(away / "plain", "r__r-4")
    report(away / "blobs", "r__r-3")
    snapshot = away / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "report.json").symlink_to(away / "blobs" / "report.json")
    (place / "r__r-3").symlink_to(snapshot)
    (place / "r__r-4").symlink_to(away / "plain")
    (run,) = hn.read(place)
    assert sorted(run.scores[0].questions.keys) == ["r__r-1", "r__r-2"]
    (note,) = [note.as_text() for note in run.notes if "lead out" in note.as_text()]
    assert "r__r-3" in note
    assert "r__r-4" in note
    assert len(hn.read(place, follow_links=True)[0].scores[0].questions) == 4
