"""Result types: their schema is shipped and holds, their forms agree, their words are documented."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

import jsonschema
import numpy as np
import pytest

import harness_noise as hn
from harness_noise import Analysis, Comparison, estimate, estimate_difference
from harness_noise.report.columns import Summary
from harness_noise.results.diagnostics import DIAGNOSTICS
from harness_noise.results.forms import KINDS, Document
from harness_noise.results.schema import json_schema
from support.strict_json import strict

RNG = np.random.default_rng(7)
A = (RNG.random((60, 4)) < 0.7).astype(float)
B = (RNG.random((60, 4)) < 0.6).astype(float)
CASES = [A, A[:, :1], np.ones((30, 3)), np.zeros((1, 1)), np.full((3, 2), np.nan), A * 5 - 2]


def test_the_shipped_schema_is_the_one_of_the_types() -> None:
    assert json.loads(files("harness_noise").joinpath("schema.json").read_text()) == json_schema()


@pytest.mark.parametrize("scores", CASES, ids=range(len(CASES)))
def test_every_estimate_is_strict_json_that_fits_the_schema(scores: np.ndarray) -> None:
    table = Analysis({"level": 0.95}, (estimate(scores),))
    found = strict(table.to_json())
    jsonschema.validate(found, json_schema())
    assert len(table.to_frame()) == 1


@pytest.mark.parametrize("scores", CASES[:3] + CASES[5:], ids=range(4))
def test_every_comparison_is_strict_json_that_fits_the_schema(scores: np.ndarray) -> None:
    table = Comparison({"level": 0.95}, (estimate_difference(scores, scores[::-1]),))
    jsonschema.validate(strict(table.to_json()), json_schema())


def test_a_result_with_a_field_too_many_does_not_fit_the_schema() -> None:
    found = Analysis({}, (estimate(A),)).to_dict()
    found["estimates"][0]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        jsonschema.validate(found, json_schema())


def test_every_diagnostic_is_documented_and_no_other(root: Path) -> None:
    documented = re.findall(r'^\| <a id="(\w+)"></a>`\1` \|', (root / "docs" / "diagnostics.md").read_text(), re.M)
    assert sorted(documented) == sorted(DIAGNOSTICS)


def test_results_are_frozen() -> None:
    with pytest.raises(AttributeError):
        estimate(A).mean = 0.0  # type: ignore[misc]


def test_the_frame_marks_what_is_not_identified_as_nan() -> None:
    frame = Analysis({}, (estimate(A[:, :1]), estimate(A * [1, 1, 1, np.nan]))).to_frame()
    assert np.isnan(frame["var_data"].astype(float)[0])
    assert np.isfinite(frame["var_data"].astype(float)[1])
    assert frame["diagnostics"].str.split().str[-1].tolist()[0] == "single_repeat"


def test_the_rows_of_the_kernel_have_all_forms() -> None:
    rng = np.random.default_rng(11)
    scores = (rng.random((30, 3)) < 0.5).astype(float)
    for item in (hn.estimate(scores), hn.estimate_difference(scores, 1 - scores)):
        found = item.to_dict()
        assert found["se"] == item.se
        assert isinstance(found["diagnostics"], list)
        assert len(item.to_frame()) == 1
        assert "<table" in item._repr_html_()
        assert item.__rich__() is not None


def test_a_kind_of_result_from_outside_brings_its_renderers() -> None:
    """A class that names its summary is shown by every form; what it has no renderer for is refused by name."""

    class Outside(Document):
        renderers: ClassVar[Mapping[str, str]] = {"summary": f"{__name__}:summary_of_outside"}
        kind: ClassVar[str] = "lines"
        always: ClassVar[tuple[str, ...]] = ("lines",)
        lines = ("one",)

    try:
        assert "seen outside" in hn.render(Outside(), "markdown")  # type: ignore[arg-type]
        assert "seen outside" in str(Outside())
        with pytest.raises(
            hn.InputError, match="write_figures accepts Analysis or Comparison or Arena or Plan, not Outside"
        ):
            hn.write_figures(Outside(), "nowhere")  # type: ignore[arg-type]
    finally:
        del KINDS["Outside"]


def summary_of_outside(result: Document, *, brief: bool, wide: bool) -> Summary:
    return Summary((), (), ("seen outside",))
