"""Files that a format's own module recognises, and that its declaration lets through to the module."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import harness_noise as hn
from harness_noise_adapters.extra import formats

FORMATS = [each for each in vars(formats).values() if isinstance(each, formats.Format)]
STARTS = (
    '{"instance_x": true}',
    '{"no_generation": ["c"], "generated": ["a", "b"], "resolved": ["a"]}',
    '{"total_instances": 3}',
    '{"a-1": {"patch_successfully_applied": true}}',
    '{"schema_version": "0.3", "evaluation_id": "x"}',
    '{"trial_name": "x"}',
    '{"n_total_trials": 2}',
)
NAMES = (
    "x",
    "x.txt",
    "x.json",
    "x.JSON",
    "x_samples.jsonl",
    "result.json",
    "results.json",
    "report.json",
    "per_instance_details.json",
    "details_t_2024-01-01T00-00-00.parquet",
)
BEFORE = ("", "\ufeff", "\n\t ", " " * 5000)
FOLDERS = (".", "results", "child", "details/model/date")


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_the_declaration_hides_no_file_from_its_module(each: formats.Format, tmp_path: Path) -> None:
    recognised = 0
    for start, name, before, folder in itertools.product(STARTS, NAMES, BEFORE, FOLDERS):
        file = tmp_path / str(recognised) / folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(before + start)
        for place in {file, file.parent, tmp_path / str(recognised)}:
            found = each._adapter.sniff(place)
            assert each.sniff(place) == found, place
            recognised += found
        file.unlink()
    for names in itertools.product((False, True), repeat=2):
        folder = tmp_path / "helm"
        folder.mkdir(exist_ok=True)
        for name, there in zip(("run_spec.json", "per_instance_stats.json"), names, strict=True):
            (folder / name).unlink(missing_ok=True)
            if there:
                (folder / name).write_text("{}")
        for place in (folder, *folder.iterdir()):
            found = each._adapter.sniff(place)
            assert each.sniff(place) == found, place
            recognised += found
    assert recognised


def test_a_report_of_swe_bench_1_has_any_name(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_text(STARTS[1])
    assert hn.analyze(file).estimates[0].mean == pytest.approx(1 / 3)
