"""The action's script, of each outcome once a process: a fake event, a fake of the forge's API, real comparisons."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness_noise import __version__
from support.forge import ROOT, SCRIPT, Forge, gate, table

pytestmark = pytest.mark.process


def test_a_regression_fails_and_is_told_in_summary_comment_and_output(tmp_path: Path, forge: Forge) -> None:
    new, old = table(tmp_path / "new.csv", "new", 100), table(tmp_path / "old.csv", "old", 140)
    code, summary, outputs = gate(tmp_path, forge, process=True, run=str(new), baseline=str(old), margin="0.05")
    assert (code, outputs["outcome"]) == (1, "regression")
    assert "❌ a regression" in summary
    assert "A − B = −20.0 points is shown to be below −5 points" in summary
    assert "A = new, B = old" in summary
    assert Path(outputs["report"]).read_text() == summary
    (comment,) = forge.comments
    assert comment["body"] == f"<!-- harness-noise gate -->\n{summary}"


def test_a_loss_within_the_margin_passes(tmp_path: Path, forge: Forge) -> None:
    new, old = table(tmp_path / "new.csv", "new", 135), table(tmp_path / "old.csv", "old", 140)
    code, summary, outputs = gate(tmp_path, forge, process=True, run=str(new), baseline=str(old), margin="0.1")
    assert (code, outputs["outcome"]) == (0, "pass")
    assert "✅ no regression" in summary


def test_the_second_time_the_one_comment_is_changed(tmp_path: Path, forge: Forge) -> None:
    forge.comments = [{"id": i, "body": f"a person's comment {i}", "user": {"login": "person"}} for i in range(130)]
    forge.comments[3]["body"] = forge.comments[4]["body"] = "<!-- harness-noise gate -->\nall is well"  # by anybody
    forge.comments[4]["user"] = None
    new, old = table(tmp_path / "new.csv", "new", 100), table(tmp_path / "old.csv", "old", 140)
    gate(tmp_path, forge, run=str(new), baseline=str(old))
    table(new, "new", 141)
    gate(tmp_path, forge, run=str(new), baseline=str(old))
    ours = [item for item in forge.comments[130:] if "harness-noise" in item["body"]]
    assert len(ours) == 1
    assert [forge.comments[i]["body"].endswith("all is well") for i in (3, 4)] == [True, True]
    assert "✅" in ours[0]["body"]
    assert [ask for ask in forge.asked if not ask.startswith("GET") and "graphql" not in ask] == [
        "POST /repos/some/where/issues/7/comments", "PATCH /repos/some/where/issues/comments/130"
    ]  # fmt: skip


def test_a_comment_that_may_not_be_written_changes_no_outcome(tmp_path: Path, forge: Forge) -> None:
    forge.forbidden = "/"
    new, old = table(tmp_path / "new.csv", "new", 141), table(tmp_path / "old.csv", "old", 140)
    assert gate(tmp_path, forge, run=str(new), baseline=str(old))[0] == 0
    assert forge.comments == []
    assert gate(tmp_path, forge, run=str(new), baseline=str(old), comment="false")[0] == 0


def test_groups_arguments_thresholds_and_junit(tmp_path: Path, forge: Forge) -> None:
    for model, right in (("new", 60), ("old", 70)):
        rows = [f"t{t},q{i},{model},{int((i * 37 + t) % 100 < right)}" for t in range(4) for i in range(100)]
        (tmp_path / f"{model}.csv").write_text("task,question,model,score\n" + "\n".join(rows) + "\n")
    new, old = str(tmp_path / "new.csv"), str(tmp_path / "old.csv")
    arguments = "--group 'all=t*' --junit gate.xml --self-test"
    code, summary, outputs = gate(tmp_path, forge, run=new, baseline=old, margin="0.02", arguments=arguments)
    assert (code, outputs["outcome"]) == (1, "regression")
    assert summary.count("| FAIL |") == 5
    assert "What this gate is worth" in summary
    assert (tmp_path / "gate.xml").read_text().count("<failure") == 6
    (tmp_path / "bar.yaml").write_text(
        "tasks:\n" + "".join(f"- {{name: t{t}, metrics: [{{name: score, value: 0.53}}]}}\n" for t in range(4))
    )
    arguments = "--thresholds bar.yaml --rule no-loss"
    code, summary, outputs = gate(tmp_path, forge, run=old, arguments=arguments)
    assert (code, outputs["outcome"]) == (0, "pass")
    code, summary, outputs = gate(tmp_path, forge, process=True, run=new, arguments=arguments)
    assert (code, outputs["outcome"]) == (2, "error")
    assert "⚠ cannot be judged" in summary
    assert "not decided" in summary


def test_what_cannot_be_compared_is_an_error_with_a_reason(tmp_path: Path, forge: Forge) -> None:
    new = table(tmp_path / "new.csv", "new", 135)
    for inputs, reason in (
        ({"baseline": "nothing"}, f"{tmp_path / 'nothing'}"),
        ({}, "name the run to compare with"),
        ({"baseline": str(new), "margin": "-1"}, "margin"),
    ):
        code, summary, outputs = gate(tmp_path, forge, run=str(new), **inputs)
        assert (code, outputs["outcome"]) == (2, "error")
        assert reason in summary


def test_the_action_passes_every_input_to_the_script() -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    step = action["runs"]["steps"][-1]
    given = set(re.findall(r"inputs\.([\w-]+)", json.dumps(step["env"])))
    assert given == set(action["inputs"])
    text = SCRIPT.read_text(encoding="utf-8")
    for name in step["env"]:
        assert f'setting("{name.removeprefix("GATE_")}")' in text.replace("'", '"'), name
    assert all("${{" not in part["run"] for part in action["runs"]["steps"])
    assert step["id"] in action["outputs"]["outcome"]["value"]


@pytest.mark.parametrize(("right", "code"), [(100, 1), (141, 0)])
def test_the_last_step_for_gitlab_is_shell_that_says_the_same(tmp_path: Path, right: int, code: int) -> None:
    yaml = pytest.importorskip("yaml")
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "how" / "gate.md").read_text(encoding="utf-8"), re.S)
    script = yaml.safe_load(blocks[-1])["gate"]["script"][-1].replace("results/ ", "results/scores.csv ")
    for folder, model, count in (("results", "new", right), ("baseline/results", "old", 140)):
        (tmp_path / folder).mkdir(parents=True)
        table(tmp_path / folder / "scores.csv", model, count)
    (tmp_path / "harness-noise").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness_noise "$@"\n')
    (tmp_path / "harness-noise").chmod(0o755)
    paths = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")]),
    }
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=os.environ | paths, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "| 200 |" in done.stdout


@pytest.mark.parametrize(
    "typed", [[], ["--task", "table", "--rule", "no-loss"], ["--metric", "score", "--level", "0.9"]]
)
def test_a_workflow_that_gate_writes_gives_the_action_what_it_takes(
    typed: list[str], tmp_path: Path, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its inputs are those of `action.yml`, and the action's script decides with them as `gate` does."""
    import yaml

    from harness_noise.cli import main

    monkeypatch.chdir(tmp_path)
    table(tmp_path / "new.csv", "new", 100)
    table(tmp_path / "old.csv", "old", 140)
    plain = ["gate", "new.csv", "--against", "old.csv", "--margin", "5pt", *typed]
    assert main([*plain, "--github", ".github/workflows/gate.yml"]) == 0
    text = (tmp_path / ".github/workflows/gate.yml").read_text()
    assert 'baseline: "old.csv"   # commit it, or write it in a step before this one\n' in text
    assert "the run `baseline` of its own checkout" in text.splitlines()[0]
    assert "upload-artifact" not in text, "a baseline of its own is read from no earlier run"
    assert "actions: read" not in text
    assert "push" not in text
    written = yaml.safe_load(text)
    (step,) = (step for step in written["jobs"]["gate"]["steps"] if "harness-noise/" in step.get("uses", ""))
    known = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert set(step["with"]) <= set(known)
    assert all(name in step["with"] for name, item in known.items() if item["required"])
    inputs = {"artifact" if name == "baseline-artifact" else name: value for name, value in step["with"].items()}
    code, _, outputs = gate(tmp_path, forge, **inputs)
    assert (code, outputs["outcome"]) == (main(plain), "regression")


def test_a_workflow_without_a_baseline_takes_the_artifact_that_it_uploads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import yaml

    from harness_noise.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["gate", "results", "--margin", "0.01", "--github", "w.yml"]) == 0
    text = Path("w.yml").read_text()
    assert 'baseline-artifact: "evaluation"   # the newest one of the base branch\n' in text
    assert "with the newest evaluation of its base." in text.splitlines()[0]
    *_, upload, judge = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    assert judge["with"] == {"run": "results", "margin": "0.01", "baseline-artifact": upload["with"]["name"]}
    assert upload["with"]["path"] == "results"
    assert (upload["if"], judge["if"]) == ("github.event_name == 'push'", "github.event_name == 'pull_request'")
    assert "actions: read" in text
    assert "  push: {branches: [main]}\n" in text
    assert judge["uses"] == f"harness-noise/harness-noise@v{__version__}", "a tag that a release makes"
    (pin,) = re.findall(r"harness-noise/harness-noise@(\S+)", (ROOT / "docs" / "how" / "gate.md").read_text("utf-8"))
    assert re.fullmatch(r"v\d+\.\d+\.\d+", pin)
    assert main(["gate", "results", "--floor", "0.5", "--github", "w.yml"]) == 0
    text = Path("w.yml").read_text()
    assert "baseline" not in text.partition("jobs:")[2]
    assert text.splitlines()[0].endswith("The gate holds every pull request to the bar that was typed.")
    capsys.readouterr()
    assert main(["gate", "results", "--floor", "0.5", "--github", "w.yml"]) == 0
    assert "nothing was judged" in capsys.readouterr().err
    for lost in ("--verdict", "--store", "-o"):
        Path("w.yml").unlink(missing_ok=True)
        assert main(["gate", "results", "--floor", "0.5", "--github", "w.yml", lost, "lost"]) == 2
        assert not Path("w.yml").exists()
        assert "judges nothing" in capsys.readouterr().err
    for wrong in (["gate", "/data/results"], ["gate", "a", "--task", "${{ secrets.X }}"]):
        assert main([*wrong, "--github", "w.yml"]) == 2
        assert "--github" in capsys.readouterr().err
