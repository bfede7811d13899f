"""Where a person meets the numbers: the command line of Inspect, its panel, its dump, its viewer."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

import harness_noise as hn
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "configs" / "inspect" / "passages.py"
INSPECT = [sys.executable, "-m", "inspect_ai"]


def inspect(*arguments, **options):
    environment = os.environ | {"COLUMNS": "100", "HARNESS_NOISE": ""}
    return subprocess.run(
        [*INSPECT, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        # whoever runs the tests in the background has Ctrl-C ignored, and a child inherits that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,
    )


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """The example of `configs/`, run as its docstring says."""
    folder = tmp_path_factory.mktemp("example")
    done = inspect(
        "eval", EXAMPLE.relative_to(ROOT), "--model", "mockllm/model", "-T", "simulated=true", "--epochs", 5,
        "--metadata", "noise=true", "--metadata", "noise_cluster=passage", "--log-dir", folder, "--display", "plain",
        cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.eval")
    estimate = hn.analyze(path, cluster="none").estimates[0]
    clustered = hn.analyze(path).estimates[0]
    assert clustered.n_clusters == 8
    assert clustered.se > 1.2 * estimate.se
    return SimpleNamespace(folder=folder, path=path, printed=done.stdout, estimate=clustered)


def expected(estimate):
    return {
        "noise_se": estimate.se,
        "noise_ci_low": estimate.ci_low,
        "noise_ci_high": estimate.ci_high,
        "noise_total": estimate.se_total,
        "noise_data": estimate.se_data,
        "noise_prediction": estimate.se_prediction,
    }


@pytest.mark.slow
def test_terminal_panel(example):
    lines = [line.split() for line in example.printed.splitlines()]
    rows = [line for line in lines if len(line) == 2 and (line[0] in ("accuracy", "stderr") or "noise_" in line[0])]
    assert [row[0] for row in rows] == ["accuracy", "stderr", *expected(example.estimate)]
    assert dict(rows[2:]) == {name: f"{value:.3f}" for name, value in expected(example.estimate).items()}


def test_log_dump(example):
    dumped = json.loads(inspect("log", "dump", example.path, "--header-only").stdout)
    metrics = dumped["results"]["scores"][0]["metrics"]
    assert list(metrics) == ["accuracy", "stderr", *expected(example.estimate)]
    for name, value in expected(example.estimate).items():
        assert metrics[name]["value"] == pytest.approx(value, rel=1e-12)
        assert metrics[name]["group"] == "noise"
        assert metrics[name]["params"] == {"cluster": "passage"}


def test_evals_df(example):
    pytest.importorskip("pyarrow", reason="Inspect's data frames need pyarrow")
    from inspect_ai.analysis import evals_df

    frame = evals_df(str(example.folder))
    assert len(frame) == 1
    for name, value in expected(example.estimate).items():
        assert frame[f"score_match_{name}"].iloc[0] == pytest.approx(value, rel=1e-12)
    assert frame["score_headline_metric"].iloc[0] == "accuracy"


@pytest.fixture
def viewer(example):
    """`inspect view` on the example's folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (example.folder.parent / "view.log").open("wb") as out:
        server = subprocess.Popen(
            [*INSPECT, "view", "--log-dir", str(example.folder), "--port", str(port)], stdout=out, stderr=out
        )
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(120):
            try:
                with urlopen(address, timeout=2):
                    break
            except OSError:
                assert server.poll() is None, "inspect view ended"
                time.sleep(0.25)
        yield address
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.mark.slow
@pytest.mark.browser
def test_viewer_shows_them_in_title_bar_and_scoring_panel(chromium, viewer, example):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(chromium, 40)
    chromium.get(f"{viewer}/#/logs/{example.path.name}")

    def body():
        return chromium.find_element(By.TAG_NAME, "body").text.lower()

    wait.until(lambda _: "noise_se" in body() and ("all scoring" in body() or "noise_prediction" in body()))
    shown = body()
    if shots := os.environ.get("HARNESS_NOISE_SCREENSHOTS"):
        chromium.save_screenshot(str(Path(shots) / "inspect_title.png"))
    if "all scoring" not in shown:  # older viewers show all metrics in the title bar
        title = shown[: shown.index("dataset")]
        assert all(name in title and f"{value:.3f}" in title for name, value in expected(example.estimate).items())
        return
    title = shown[: shown.index("all scoring")]
    for name in ("noise_se", "noise_ci_low", "noise_ci_high"):
        assert name in title
        assert f"{expected(example.estimate)[name]:.3f}" in title
    opener = wait.until(
        lambda _: next(
            (item for item in chromium.find_elements(By.XPATH, "//*[contains(text(), 'All scoring')]")), None
        )
    )
    chromium.execute_script("arguments[0].click()", opener)
    wait.until(lambda _: "noise_prediction" in body())
    if shots:
        chromium.save_screenshot(str(Path(shots) / "inspect_scoring.png"))
    panel = body()
    for name, value in expected(example.estimate).items():
        assert name in panel
        assert f"{value:.3f}" in panel


TASK = """
import os, signal
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver

@solver
def flaky():
    async def solve(state, generate):
        if Path(os.environ["FAULT"]).exists() and state.sample_id == 7 and state.epoch == 2:
            if os.environ["KIND"] == "cancel":
                os.kill(os.getpid(), signal.SIGINT)
                import anyio
                await anyio.sleep(30)
            raise RuntimeError("no answer")
        right = (state.sample_id * 7 + state.epoch * 5) % 3 == 0
        state.output = ModelOutput.from_content("mockllm/model", "yes" if right else "no")
        return state
    return solve

@task
def flaky_task():
    samples = [Sample(id=i, input=str(i), target="yes", metadata={"passage": i // 3}) for i in range(12)]
    return Task(dataset=samples, solver=flaky(), scorer=match())
"""


@pytest.fixture
def flaky(tmp_path, monkeypatch):
    (tmp_path / "flaky.py").write_text(textwrap.dedent(TASK))
    (tmp_path / "fault").touch()
    monkeypatch.setenv("FAULT", str(tmp_path / "fault"))
    return tmp_path


def run_flaky(folder, *options):
    return inspect(
        "eval", "flaky.py", "--model", "mockllm/model", "--epochs", 3, "--metadata", "noise=true", "--metadata",
        "noise_cluster=passage", "--log-dir", folder / "logs", "--display", "plain", "--max-samples", 1, *options,
        cwd=folder,
    )  # fmt: skip


@pytest.mark.slow
def test_retry_counts_the_samples_it_reuses(flaky, monkeypatch):
    from inspect_ai.log import read_eval_log

    monkeypatch.setenv("KIND", "raise")
    run_flaky(flaky, "--fail-on-error", "1")
    (first,) = (flaky / "logs").glob("*.eval")
    assert read_eval_log(str(first), header_only=True).status == "error"
    (flaky / "fault").unlink()
    again = inspect("eval-retry", first, "--log-dir", flaky / "logs", "--display", "plain", cwd=flaky)
    assert again.returncode == 0, again.stderr
    (second,) = set((flaky / "logs").glob("*.eval")) - {first}
    metrics = read_eval_log(str(second), header_only=True).results.scores[0].metrics
    table = [[float((i * 7 + j * 5) % 3 == 0) for j in (1, 2, 3)] for i in range(12)]
    want = hn.estimate(table, [i // 3 for i in range(12)])
    assert metrics["noise_se"].value == pytest.approx(want.se, rel=1e-12)
    assert metrics["noise_prediction"].value == pytest.approx(want.se_prediction, rel=1e-12)
    assert metrics["noise_se"].metadata["n_missing"] == 0
    assert "noise_se" in again.stdout


@pytest.mark.slow
def test_a_cancelled_run_has_them_for_what_was_answered(flaky, monkeypatch):
    from inspect_ai.log import read_eval_log

    monkeypatch.setenv("KIND", "cancel")
    run_flaky(flaky)
    (path,) = (flaky / "logs").glob("*.eval")
    log = read_eval_log(str(path))
    assert log.status == "cancelled"
    metrics = log.results.scores[0].metrics
    scored = sum(1 for sample in log.samples if sample.scores)
    assert 1 < scored < 36
    assert metrics["noise_se"].metadata["n_missing"] == 0  # what was never asked does not lack a score
    (run,) = hn.read(path)
    assert run.scores[0].n_missing == 0
    assert any(f"{36 - scored} of 36 answers were never given" in note for note in noted(run))
    again = hn.analyze(run).estimates[0]
    assert metrics["accuracy"].value == pytest.approx(again.mean)
    assert metrics["noise_se"].value == pytest.approx(again.se, rel=1e-12)
    assert any("status cancelled" in note for note in noted(run))
