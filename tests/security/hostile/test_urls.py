"""Passwords and signatures of URLs are read with, and never shown."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_noise.cli import main
from harness_noise.errors import InputError, without_secrets

from .limits import table

SIGNED = "X-Amz-Credential=AKIA123&X-Amz-Signature=5ec2e7"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://user:pass@bucket/a/b.csv: no such file", "s3://bucket/a/b.csv: no such file"),
        (f"https://host/a.csv?{SIGNED}: gone", "https://host/a.csv gone"),
        ("of 'https://u:p@h:80/x?y=1' and (http://h/z#f)", "of 'https://h:80/x' and (http://h/z)"),
        ("what? a@b.c and 1/2", "what? a@b.c and 1/2"),
    ],
)
def test_a_url_without_its_secrets(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert str(InputError(text)) == shown


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """A table that is given to those who have the signature alone."""
    content = table(tmp_path / "scores.csv").read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            right = SIGNED in self.path
            self.send_response(200 if right else 403)
            self.send_header("Content-Length", str(len(content) if right else 0))
            self.end_headers()
            self.wfile.write(content if right else b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/scores.csv"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signed_url_is_read_and_its_signature_shown_nowhere(
    served: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("aiohttp")
    pytest.importorskip("upath")
    url = f"{served}?{SIGNED}"
    assert main(["analyze", url, "--format", "json"]) == 0
    found = capsys.readouterr()
    (row,) = json.loads(found.out)["estimates"]
    assert (row["n_questions"], row["model"]) == (40, "scores")
    assert main(["compare", url, url, "--html", str(tmp_path / "page.html")]) in (0, 2)
    assert main(["analyze", f"{served}?wrong&{SIGNED[:20]}"]) == 2
    more = capsys.readouterr()
    page = (tmp_path / "page.html").read_text() if (tmp_path / "page.html").exists() else ""
    for text in (found.out, found.err, more.out, more.err, page):
        assert "AKIA123" not in text
        assert "5ec2e7" not in text


USER = "memory://reader:hunter2@runs/"


@pytest.fixture
def kept_behind_a_password(tmp_path: Path) -> Iterator[None]:
    """Runs and the files of options on a file system that is reached with a password."""
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("upath")
    system = fsspec.filesystem("memory")
    for name, right in (("a", 22), ("b", 18), ("c", 20)):
        system.pipe(f"/reader:hunter2@runs/{name}.csv", table(tmp_path / "table.csv", right).read_bytes())
    rest = {
        "labels.csv": "question,label\n" + "".join(f"q{i},{i % 2}\n" for i in range(40)),
        "weights.csv": "task,weight\na,1\nb,2\n",
        "chance.csv": "task,chance\ntable,0.25\n",
        "thresholds.yaml": "tasks: [{name: table, metrics: [{name: score, value: 0.1}]}]\n",
    }
    for name, text in rest.items():
        system.pipe(f"/reader:hunter2@runs/{name}", text.encode())
    yield
    system.rm("/reader:hunter2@runs", recursive=True)


@pytest.mark.parametrize("form", ["json", "markdown", "csv"])
@pytest.mark.parametrize(
    "words",
    [
        "analyze A",
        "analyze A --labels labels.csv",
        "analyze A B --weights weights.csv",
        "analyze A --chance chance.csv",
        "compare A B",
        "gate A --against B --margin 0.5",
        "gate A --thresholds thresholds.yaml",
        "arena A B C",
        "arena A B C --against a",
        "plan --from A B --effect 0.1",
    ],
)
def test_a_password_is_in_no_settings_and_no_note(
    words: str, form: str, kept_behind_a_password: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [
        USER + word.lower() + ".csv"
        if word in "ABC"
        else USER + word
        if Path(word).suffix in (".csv", ".yaml")
        else word
        for word in words.split()
    ]
    page = tmp_path / "page.html"
    html = ["--html", str(page)] if places[0] == "compare" else []
    assert main([*places, "--format", form, *html]) in (0, 1)
    said = "".join(capsys.readouterr())
    assert "hunter2" not in said
    assert not page.exists() or "hunter2" not in page.read_text()
