"""Fixtures that all tests share."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import settings

from support.harness_runs import made_once
from support.processes import environment

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

    from support.forge import Forge

# the same examples on every machine, however slow it is
settings.register_profile("project", deadline=None, derandomize=True)
settings.register_profile("check", deadline=None, derandomize=True, max_examples=20)
settings.load_profile("project")

# without compiled modules every program that a test starts, and every worker, compiles the harnesses anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# a shell script starts background jobs with Ctrl-C ignored; children of the tests would inherit that, and never end
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make check` takes a part of the cases; the mark `slow` says what `make test` leaves out."""
    parser.addoption("--cases", type=int, help="of each parametrized test at most this many cases, drawn once for all")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the cases of a test with the smallest hashes of their names: no stride of a grid, and always the same."""
    most = config.getoption("--cases", None)
    if most is None:
        return
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    drawn = {
        item for cases in tests.values() for item in sorted(cases, key=lambda case: crc32(case.nodeid.encode()))[:most]
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in drawn])
    items[:] = [item for item in items if item in drawn]


def pytest_collection_finish() -> None:
    """Take what the harnesses' imports made out of every later collection of garbage: the tests make many."""
    gc.collect()
    gc.freeze()


ROOT = Path(__file__).resolve().parent.parent
SUPPORT = ROOT / "tests" / "support"


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real outputs of others, laid beside the project for its developers and CI."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip(f"no folder {path.name} beside the project: real files are not here")
    return path


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    """The path of a table to be written."""
    return tmp_path / "t.csv"


@pytest.fixture(scope="session")
def every_worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of pytest-xdist share."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "every_worker"


@pytest.fixture(scope="session")
def real_files(every_worker: Path, request: pytest.FixtureRequest) -> Path:
    """Small real files of every kind that is read: runs of the installed harnesses, tables; see fuzz/write_seeds.py."""
    for name in ("lm_eval", "inspect_ai", "pyarrow"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    runs = request.getfixturevalue("lm_eval_runs")
    sources = [str(ROOT / "tests" / "fuzz" / "write_seeds.py")]
    return made_once(
        every_worker, "real_files", "inspect-ai", sources,
        lambda folder: _written_by("fuzz.write_seeds", folder, str(runs)),
    )[0]  # fmt: skip


@pytest.fixture(scope="session")
def lm_eval_runs(every_worker: Path) -> Path:
    """Finished runs of the installed lm-eval, made without our flag; see support/lm_eval_write_runs.py."""
    pytest.importorskip("lm_eval", reason="lm-eval is not installed")
    sources = [str(SUPPORT / name) for name in ("lm_eval_write_runs.py", "lm_eval_models.py")]
    return made_once(
        every_worker, "lm_eval_runs", "lm-eval", sources,
        lambda folder: _written_by("support.lm_eval_write_runs", folder, HF_HOME=str(folder / "hf")),
    )[0]  # fmt: skip


def _written_by(program: str, folder: Path, *arguments: str, **variables: str) -> None:
    command = [sys.executable, "-m", program, str(folder), *arguments]
    offline = environment(HF_HUB_OFFLINE="1", **variables)
    done = subprocess.run(command, env=offline, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """A headless Debian Chromium, driven by selenium; one window for the whole session.

    Without a browser the test is skipped, unless HARNESS_NOISE_REQUIRE_BROWSER=1 forbids that.
    """
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None or importlib.util.find_spec("selenium") is None:
        reason = "no browser here: chromium, chromedriver (apt) and selenium (pip) are needed"
        if os.environ.get("HARNESS_NOISE_REQUIRE_BROWSER", "") not in ("", "0"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = browser
    for flag in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", "--window-size=1400,1000",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = Chrome(options=options, service=ChromeService(driver))
    window.set_page_load_timeout(60)
    window.set_script_timeout(240)  # axe looks at a whole page, on a machine that may have other work
    try:
        yield window
    finally:
        window.quit()


@pytest.fixture
def forge() -> Iterator[Forge]:
    """A fake of the forge's API that answers while a test runs."""
    from support.forge import Forge

    server = Forge()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
