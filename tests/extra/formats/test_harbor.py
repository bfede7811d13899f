"""Harbor's jobs: tasks are questions, trials their answers, and a trial without a reward is missing by its cause."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import InputError
from harness_noise.data.scores import ReadOptions
from harness_noise.extra.testing.adapters import check_adapter
from harness_noise.io import registry as adapters
from harness_noise_adapters.extra.formats.harbor import adapter
from harness_noise_adapters.extra.formats.harbor_trials import CAUSES, INVALID
from support.commands import refused
from support.harbor_files import job, trial
from support.notes import noted

REWARDS = np.arange(24).reshape(8, 3) * 7 % 5 % 2.0


def trials() -> list[dict]:
    """Eight tasks of three trials; of the second task one trial ran out of time, one was lost with its sandbox."""
    found = [trial(f"task-{i}", k, REWARDS[i, k]) for k in range(3) for i in range(8)]
    lost = {("task-1", 1): "AgentTimeoutError", ("task-1", 2): "SandboxBuildFailedError"}
    for each in found:
        name = each["trial_name"].split("__")
        if (cause := lost.get((name[0], int(name[1])))) is not None:
            each |= trial(name[0], int(name[1]), None, cause)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return job(tmp_path / "jobs" / "one", trials())


def test_what_every_adapter_promises(folder: Path, tmp_path: Path) -> None:
    expected = {
        ("tasks", "task-0 (um of task-0)"): REWARDS[0],
        ("tasks", "task-1 (um of task-1)"): [REWARDS[1, 0], None, None],
    }
    check_adapter(
        adapter,
        folder,
        tmp_path / "work",
        cluster="checksum",
        question="task_name",
        factor="exception",
        models=["oracle@1.0/sim/sim-a"],
        expected=expected,
    )


@pytest.mark.parametrize("place", [".", "result.json", ".."])
def test_a_job_its_file_and_a_folder_of_jobs_are_read(folder: Path, place: str) -> None:
    (run,) = hn.read(folder / place)
    (part,) = run.scores
    assert (run.model, run.harness, part.task, part.metric) == ("oracle@1.0/sim/sim-a", "harbor", "tasks", "reward")
    assert part.missing == {"limit": 1, "infrastructure": 1}
    assert part.diagnostics == ()


def test_a_trial_alone_is_a_run_of_one_question(folder: Path) -> None:
    (run,) = hn.read(folder / "task-3__0")
    assert (len(run.scores[0].questions), run.scores[0].values[0, 0]) == (1, REWARDS[3, 0])


def test_missing_trials_are_counted_by_cause_and_count_as_wrong_where_asked(folder: Path) -> None:
    whole = np.where(np.arange(8) == 1, REWARDS[1, 0], REWARDS.mean(axis=1))
    assert hn.analyze(folder).estimates[0].mean == pytest.approx(whole.mean())
    for missing, share in (("limit=zero", 1 / 2), ("zero", 1 / 3)):
        mine = np.where(np.arange(8) == 1, REWARDS[1, 0] * share, REWARDS.mean(axis=1))
        row = hn.analyze(folder, missing=missing).estimates[0]
        assert (row.mean, dict(row.missing)) == (pytest.approx(mine.mean()), {"limit": 1, "infrastructure": 1})
    assert any("2 answers have no score (1 limit, 1 infrastructure)" in note or "(1 infrastructure, 1 limit)" in note
               for note in noted(hn.analyze(folder)))  # fmt: skip


def test_the_job_s_own_mean_is_reproduced_or_it_is_said(tmp_path: Path) -> None:
    good, wrong = job(tmp_path / "good", trials()), job(tmp_path / "wrong", trials(), mean=0.9)
    assert "mean_mismatch" not in hn.analyze(good).estimates[0].diagnostics
    assert "mean_mismatch" in hn.analyze(wrong).estimates[0].diagnostics


def test_agents_models_and_settings_are_systems_of_their_own(tmp_path: Path) -> None:
    found = [trial(f"task-{i}", k, 1.0) for i in range(3) for k in range(2)]
    for each in found[1::2]:
        each["config"]["agent"]["kwargs"] = {"reasoning_effort": "high", "api_key": "sk-1", "version": "1.0"}
    runs = hn.read(job(tmp_path / "job", found))
    assert [run.model for run in runs] == ["oracle@1.0/sim/sim-a", "oracle@1.0/sim/sim-a (reasoning_effort=high)"]


def test_a_limit_on_tokens_is_a_setting_and_no_secret(tmp_path: Path) -> None:
    found = [trial(f"task-{i}", k, float(k)) for i in range(3) for k in range(2)]
    for number, each in enumerate(found):
        env = {"env": {"API_KEY": "sk-2"}} if number % 2 else {}
        each["config"]["agent"]["kwargs"] = {"max_thinking_tokens": 1000 * (1 + number % 2), "auth_token": "sk-1"} | env
    runs = hn.read(job(tmp_path / "job", found))
    assert [run.scores[0].values.mean() for run in runs] == [0, 1]
    assert runs[0].model.endswith("(max_thinking_tokens=1000)")
    assert "max_thinking_tokens=2000" in runs[1].model
    assert not any("sk-" in run.model for run in runs)


def test_a_reward_after_the_provider_failed_is_missing_and_the_job_s_mean_no_mismatch(tmp_path: Path) -> None:
    """Harbor grades what an agent left when its provider failed, and says itself that the reward is not valid."""
    found = [trial(f"task-{i}", k, float(i % 2)) for i in range(6) for k in range(2)]
    for number, exception in ((2, "ApiRateLimitError"), (3, "APIError"), (4, "NonZeroAgentExitCodeError"), (0, "Odd")):
        found[number]["exception_info"] = {"exception_type": exception}
    folder = job(tmp_path / "job", found)
    for options, mean in (({}, 2 / 5), ({"missing": "zero"}, 2 / 6)):
        row = hn.analyze(folder, **options).estimates[0]
        assert (row.missing, row.diagnostics.count("mean_mismatch")) == ({"infrastructure": 2}, 0)
        assert row.mean == pytest.approx(mean)
    assert "mean_mismatch" in hn.analyze(job(tmp_path / "wrong", found, mean=0.9)).estimates[0].diagnostics


@pytest.mark.parametrize(
    "fields",
    [
        {"config": {"agent": {"kwargs": "x"}}},
        {"agent_execution": {"started_at": "then", "finished_at": 5}},
        {"agent_execution": {"started_at": "2026-01-01T00:00:00", "finished_at": "2026-01-01T00:00:00Z"}},
        {"step_results": 3},
        {"agent_result": {"cost_usd": 10**400}},
    ],
)
def test_what_is_beside_the_score_costs_no_trial(tmp_path: Path, fields: dict) -> None:
    folder = job(tmp_path / "job", [trial("a", 0), trial("b", 0, **fields)])
    assert hn.analyze(folder).estimates[0].n_questions == 2


def test_a_job_says_how_many_of_its_trials_are_there_and_a_mean_without_end_is_none(tmp_path: Path) -> None:
    folder = job(tmp_path / "job", [trial(f"task-{i}", 0) for i in range(3)])
    text = (folder / "result.json").read_text()
    (folder / "result.json").write_text(text.replace('trials": 3', 'trials": 9', 1).replace("1.0", "1" * 400))
    (run,) = hn.read(folder)
    assert any("of 9 trials of the job 3 are read" in note for note in noted(run))


def test_several_rewards_are_several_metrics_and_one_that_is_absent_is_missing(tmp_path: Path) -> None:
    found = [trial(f"task-{i}", 0, {"reward": i / 4, "style": 0.5} if i else {"reward": 0.0}) for i in range(4)]
    (run,) = hn.read(job(tmp_path / "job", found))
    assert [(part.metric, part.n_missing) for part in run.scores] == [("reward", 0), ("style", 1)]


def test_a_task_that_was_changed_is_another_question(tmp_path: Path) -> None:
    found = [trial("task-0", 0), trial("task-0", 1, task_checksum="another"), trial("task-1", 2)]
    (run,) = hn.read(job(tmp_path / "job", found))
    assert run.scores[0].questions.keys == ("task-0 (um of task-0)", "task-0 (another)", "task-1 (um of task-1)")
    a, b = job(tmp_path / "a", [trial("t", 0)]), job(tmp_path / "b", [trial("t", 0, task_checksum="another")])
    with pytest.raises(InputError, match="no question in common"):
        hn.compare(a, b)
    assert hn.compare(a, b, columns={"question": "task_name"}).comparisons[0].n_questions == 1


def test_repositories_of_swe_bench_are_clusters(tmp_path: Path) -> None:
    found = [trial(f"django__django-{i}" if i % 2 else f"sympy__sympy-{i}", i) for i in range(6)]
    (run,) = hn.read(job(tmp_path / "job", found), cluster="auto")
    assert set(run.scores[0].clusters) == {"django__django", "sympy__sympy"}


def test_what_the_trials_cost_can_be_asked_for(folder: Path) -> None:
    (run,) = hn.read(folder, fields=["cost_usd", "seconds"])
    fields = run.scores[0].questions.fields
    assert fields.values["cost_usd"][0] == 0.25
    assert fields.values["seconds"][0] == 20.0


def usages() -> list[dict]:
    """What agents used: in one step, in several, in both places, and not said."""
    used = {"n_input_tokens": 1000, "n_cache_tokens": 400, "n_output_tokens": 50, "cost_usd": 0.5}
    steps = [{"step_name": f"s{i}", "agent_result": used | {"cost_usd": i / 4}} for i in range(3)]
    return [
        {"agent_result": used},
        {"agent_result": None, "step_results": steps},
        {"agent_result": used, "step_results": steps},
        {"agent_result": None},
    ]


USAGE = {"input_tokens": [1000, 3000, 1000], "cache_read_tokens": [400, 1200, 400], "output_tokens": [50, 150, 50],
         "cost": [0.5, 0.75, 0.5]}  # fmt: skip


def test_the_usage_of_an_agent_is_that_of_the_trial_or_the_sum_of_its_steps(tmp_path: Path) -> None:
    folder = job(tmp_path / "job", [trial(f"task-{i}", 0, **used) for i, used in enumerate(usages())])
    rows = {row.metric: row for row in hn.analyze(folder, measures=list(USAGE)).estimates}
    for name, values in USAGE.items():
        assert (rows[name].n_questions, rows[name].mean) == (3, pytest.approx(np.mean(values)))


def test_usage_is_what_harbor_s_own_model_of_a_trial_sums_up() -> None:
    result = pytest.importorskip("harbor.models.trial.result", reason="harbor is not installed (Python ≥ 3.12)")
    found = [result.TrialResult.model_validate(trial(f"task-{i}", 0, **used)) for i, used in enumerate(usages())]
    totals = [each.compute_token_cost_totals() for each in found]
    assert totals == [*zip(*USAGE.values(), strict=True), (None,) * 4]


def damaged(folder: Path, text: str | bytes) -> Path:
    (folder / "task-2__1" / "result.json").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


HOSTILE = {
    "cut": '{"task_name": "task-2", "trial_na',
    "a pointer": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
    "another's": '{"result": [1, 2]}',
    "a word": json.dumps(trial("task-2", 1, "good")),
    "a list": json.dumps(trial("task-2", 1) | {"verifier_result": {"rewards": [1]}}),
    "nulls": json.dumps(trial("task-2", 1) | {"agent_info": None, "config": None, "verifier_result": None}),
    "endless": json.dumps(trial("task-2", 1, 123.5)).replace("123.5", "9" * 100_000),
    "infinite": json.dumps(trial("task-2", 1, 123.5)).replace("123.5", "1e999"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_damaged_trial_is_a_note_in_its_job_and_refused_alone(
    folder: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged(folder, HOSTILE[what])
    notes = noted(hn.analyze(folder))
    assert any("task-2__1" in note and "left out" in note for note in notes), notes
    alone = folder.parent / "alone"
    shutil.move(folder / "task-2__1", alone)
    capsys.readouterr()
    refused(alone / "result.json", capsys, "result.json")


def test_nan_is_missing_and_a_trial_without_its_file_is_said(folder: Path) -> None:
    damaged(folder, json.dumps(trial("task-2", 1, float("nan"))))
    (folder / "task-4__0" / "result.json").unlink()
    (run,) = hn.read(folder)
    assert run.scores[0].n_missing == 3
    assert any("1 trials have no result.json" in note for note in noted(run))


def test_harbor_s_own_policy_is_the_one_that_is_read() -> None:
    policy = pytest.importorskip("harbor.models.trial.error_policy", reason="harbor is not installed (Python ≥ 3.12)")
    ours = {
        "sandbox_failed": "infrastructure", "model_provider_failed": "infrastructure",
        "harbor_failed": "infrastructure",
        "agent_exhausted_budget": "limit", "agent_refused_task": "refused", "verifier_failed": "verifier",
        "cancelled": "unanswered", "unclassified": "agent",
    }  # fmt: skip
    for name, rule in policy.ERROR_POLICIES.items():
        cause = CAUSES.get(name.removesuffix("Error"))
        if hasattr(rule, "cause"):
            assert cause == ours[rule.cause], name
        else:  # from 0.26 on it says only which rewards count
            assert cause is not None, name
            assert (cause in INVALID) != rule.has_valid_reward, name


def test_a_task_is_found_in_another_harness_by_the_field_that_names_it(folder: Path, tmp_path: Path) -> None:
    from support.every_eval_ever_files import result, sample, write

    samples = [sample(i, 1.0, sample_id=f"task-{i}") for i in range(8)]
    other = write(tmp_path, samples, [result("accuracy", 1.0)])
    columns = {"A:question": "task_name", "B:question": "sample_id"}
    (row,) = hn.compare(folder, other, columns=columns).comparisons
    assert row.n_questions == 8


def test_a_setting_that_names_the_task_makes_no_other_agent_of_each_task(tmp_path: Path) -> None:
    found = [trial(f"bench/task-{i}", 0, float(i % 2), trial_name=f"task-{i}__x") for i in range(4)]
    for i, one in enumerate(found):
        one["config"]["agent"]["kwargs"] = {"cell": f"task-{i}--pi", "harness": "pi"}
    (run,) = hn.read(job(tmp_path / "job", found))
    assert run.model.endswith("(cell=TASK--pi, harness=pi)")
    assert run.scores[0].values.shape == (4, 1)


def test_links_in_a_folder_of_a_harness_are_its_own_affair(tmp_path: Path) -> None:
    """Harbor reads a trial that is linked into a job: it is not read a second time."""
    trial = {"task_name": "t", "trial_name": "t__1", "agent_info": {"name": "a", "model_info": {"name": "m"}}}
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "result.json").write_text(json.dumps(trial | {"verifier_result": {"rewards": {"reward": 1}}}))
    job = tmp_path / "job"
    job.mkdir()
    (job / "t__1").symlink_to(tmp_path / "trial")
    (run,) = adapters.read(job, ReadOptions(follow_links=True))
    assert run.scores[0].values.tolist() == [[1.0]]
