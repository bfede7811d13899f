"""The pins' checker sees what changed: a number, a word, a row, a file, a whole case; and nothing else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from pins import normal, pin
from pins.differences import differences

OLD: dict[str, Any] = {
    "code": 0,
    "stdout": json.dumps({"estimates": [{"mean": 0.625, "n": 200, "se": None}, {"mean": 1.0, "n": 3, "se": 0.1}]}),
    "stderr": "harness-noise: 2 answers are missing\n",
    "files": {"table.csv": "mean,se\n0.30000000000000004,0.1\n", "page.txt": "a 0.12 ± 0.03\nb 0.5\n"},
}


def found(change: Any, tolerance: float = 1e-12) -> list[tuple[str, Any, Any]]:
    new = copy.deepcopy(OLD)
    change(new)
    return list(differences(OLD, new, tolerance=tolerance))


def stdout(change: Any) -> Any:
    def apply(record: dict[str, Any]) -> None:
        value = json.loads(record["stdout"])
        change(value["estimates"])
        record["stdout"] = json.dumps(value)

    return apply


def test_nothing_changed_is_no_difference():
    assert found(lambda new: None) == []


def test_a_changed_number_is_named_with_its_path():
    assert found(stdout(lambda rows: rows[0].update(mean=0.6250001))) == [
        ("$.stdout.estimates[0].mean", 0.625, 0.6250001)
    ]
    assert found(stdout(lambda rows: rows[0].update(n=201))) == [("$.stdout.estimates[0].n", 200, 201)]


def test_the_last_digits_of_a_number_may_move_but_not_where_bytes_count():
    nudge = stdout(lambda rows: rows[0].update(mean=0.625 * (1 + 1e-15)))
    assert found(nudge) == []
    assert len(found(nudge, tolerance=0)) == 1
    assert found(stdout(lambda rows: rows[0].update(mean=0.625 + 3e-12))) != []


@pytest.mark.parametrize(
    "change",
    [
        stdout(lambda rows: rows.pop()),
        stdout(lambda rows: rows.append({"mean": 1.0})),
        stdout(lambda rows: rows[0].update(se=0.0)),
        stdout(lambda rows: rows[0].update(n=200.0)),
        stdout(lambda rows: rows[0].pop("se")),
        stdout(lambda rows: rows[0].update(more=1)),
        stdout(lambda rows: rows[0].update(mean=rows[0].pop("mean"))),
        lambda new: new.update(code=1),
        lambda new: new.update(stderr="harness-noise: 3 answers are missing\n"),
        lambda new: new.update(stderr="harness-noise: 2 answers were missing\n"),
        lambda new: new.update(stderr=""),
        lambda new: new["files"].pop("page.txt"),
        lambda new: new["files"].update({"page.txt": "a 0.12 ± 0.03\n"}),
        lambda new: new["files"].update({"page.txt": "a 0.13 ± 0.03\nb 0.5\n"}),
        lambda new: new["files"].update({"page.txt": "a 0.12 ± 0.03\nb 0.50\n"}),
        lambda new: new["files"].update({"table.csv": "mean,se\n0.3000000001,0.1\n"}),
    ],
)
def test_every_kind_of_change_is_one_difference(change):
    assert len(found(change)) == 1


def test_unrounded_numbers_of_a_text_have_the_tolerance():
    assert found(lambda new: new["files"].update({"table.csv": "mean,se\n0.30000000000000010,0.1\n"})) == []


def test_only_dates_and_ids_are_taken_out_of_a_live_file(tmp_path: Path):
    log = {
        "date": "2026-01-02T03-04-05",
        "uuid": "BBdgXTPZXdfNSbNJFyCZ4o",
        "said": "at 2026-01-02T03:04:05.123+00:00",
        "mean": 0.1234567890123456,
        "id": "q12",
    }
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    kept = {"date": "<date>", "uuid": "<id>", "said": "at <date>", "mean": 0.1234567890123456, "id": "q12"}
    assert normal.file(path, {}, live=True) == kept
    assert json.loads(normal.file(path, {})) == log


def test_the_check_fails_on_a_change_and_on_a_case_too_many_or_too_few(tmp_path: Path, capsys):
    pin._write(tmp_path, "compare/x/default", OLD)
    pin._write(tmp_path, "analyze/{{a}}.json", OLD)
    records = {"compare/x/default": OLD, "analyze/{{a}}.json": OLD}
    changed = records | {"compare/x/default": OLD | {"stderr": "", "code": 1}}
    outcomes = [
        pin._compare(tmp_path, given, "*", 10)
        for given in (records, changed, records | {"plan/new": OLD}, {"compare/x/default": OLD}, {})
    ]
    assert outcomes == [0, 1, 1, 1, 1]
    said = capsys.readouterr().out
    assert "compare/x/default: $.code: 0 → 1" in said
    assert "pinned, but no such case now" in said
    assert "plan/new: a case that is not pinned" in said
