"""The JSON Schema of the results, made from the dataclasses: `python -m harness_noise.results.schema`."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from .diagnostics import DIAGNOSTICS
from .forms import SCHEMA_VERSION
from .plan import Plan, PlanRow, PlugIn, TheoryRow

if TYPE_CHECKING:
    pass
from .rows import Difference, Estimate, Flip


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `--format json` and of a results file's `noise` block.

    It is generated from the dataclasses above and shipped as `schema.json`.
    """
    from ..stats.combine import Combined
    from .arena import Benchmark, Model, Question, Spread, Step
    from .explanation import Coefficient, Fit
    from .factors import FactorRow
    from .slices import DifferenceSlice, EstimateSlice, Heterogeneity

    def rows(*names: str) -> dict[str, Any]:
        items = [{"$ref": f"#/$defs/{name}"} for name in names]
        return {"type": "array", "items": items[0] if len(items) == 1 else {"anyOf": items}}

    kinds: dict[str, dict[str, Any]] = {
        "str": {"type": "string"},
        "str | None": {"type": ["string", "null"]},
        "int": {"type": "integer", "minimum": 0},
        "float": {"type": "number"},
        "float | None": {"type": ["number", "null"]},
        "bool": {"type": "boolean"},
        "bool | None": {"type": ["boolean", "null"]},
        "int | None": {"type": ["integer", "null"], "minimum": 0},
        "tuple[str, ...]": {"type": "array", "items": {"type": "string"}},
        "tuple[Step, ...]": rows("step"),
        "tuple[PlanRow, ...]": rows("plan_row"),
        "PlugIn | None": {"anyOf": [{"$ref": "#/$defs/plug_in"}, {"type": "null"}]},
        "tuple[TheoryRow, ...]": rows("theory"),
        "tuple[float, float] | None": {
            "anyOf": [{"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}, {"type": "null"}]
        },
        "Spread | None": {"anyOf": [{"$ref": "#/$defs/spread"}, {"type": "null"}]},
        "Mapping[int, float] | None": {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
    }
    codes = {"type": "array", "items": {"enum": sorted(DIAGNOSTICS)}}

    def table(kind: type[Any]) -> dict[str, Any]:
        properties = {
            item.name: codes if item.name == "diagnostics" else kinds[str(item.type)] for item in fields(kind)
        }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "harness-noise",
        "type": "object",
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "harness_noise_version": {"type": "string"},
            "settings": {"type": "object"},
            "estimates": rows("estimate"),
            "comparisons": rows("comparison"),
            "models": rows("model"),
            "pairs": rows("comparison"),
            "benchmarks": rows("benchmark"),
            "questions": rows("flip", "question"),
            "combined": rows("combined"),
            "plan": {"$ref": "#/$defs/plan"},
            "factors": rows("factor"),
            "slices": rows("estimate_slice", "comparison_slice"),
            "heterogeneity": rows("heterogeneity"),
            "coefficients": rows("coefficient"),
            "fits": rows("fit"),
            "n_answers": kinds["int"],
            "mean": kinds["float"],
            "advice": kinds["str"],
            "notes": {"type": "array", "items": kinds["str"]},
        },
        "required": ["schema_version", "harness_noise_version", "settings"],
        "anyOf": [
            {"required": ["estimates"]},
            {"required": ["comparisons"]},
            {"required": ["models", "pairs", "benchmarks", "questions"]},
            {"required": ["plan"]},
            {"required": ["coefficients", "fits"]},
            {"required": ["factors", "n_answers", "mean", "advice"]},
        ],
        "additionalProperties": False,
        "$defs": {
            "estimate": table(Estimate),
            "comparison": table(Difference),
            "flip": table(Flip),
            "model": table(Model),
            "benchmark": table(Benchmark),
            "question": table(Question),
            "spread": table(Spread),
            "step": table(Step),
            "combined": table(Combined),
            "plan": table(Plan),
            "plan_row": table(PlanRow),
            "plug_in": table(PlugIn),
            "theory": table(TheoryRow),
            "factor": table(FactorRow),
            "coefficient": table(Coefficient),
            "fit": table(Fit),
            "estimate_slice": table(EstimateSlice),
            "comparison_slice": table(DifferenceSlice),
            "heterogeneity": table(Heterogeneity),
        },
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
