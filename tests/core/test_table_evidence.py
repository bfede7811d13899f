"""Which column of a table is what: the test matrix of the specification, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path, PurePath

import pytest

from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError
from harness_noise_adapters.tables import adapter
from harness_noise_adapters.tables.evidence import AskError, RefuseError, judge
from harness_noise_adapters.tables.evidence.places import places_of
from support.notes import noted

CASES = Path(__file__).parents[2].parent / "shared" / "data" / "tables" / "evidence_cases.jsonl"
WIDE = ("models", "metrics", "repeats")


def cases(shape):
    if not CASES.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{CASES.name} is not there"))]
    found = [json.loads(line) for line in CASES.read_text().splitlines()]
    return [pytest.param(case, id=f"{case['id']} {case['why']}") for case in found if shape(case)]


def outcome(function, *arguments):
    """What reading gives: roles, or the question or refusal in their place."""
    try:
        return function(*arguments)
    except (AskError, RefuseError) as error:
        return error


def verdict_of(found):
    return {AskError: "ask", RefuseError: "refuse"}.get(type(found), "take")


def roles_in(roles):
    names = [column.name for column in roles.score]
    said = {"score": sorted(names) if roles.kind in WIDE else names[0], "question": roles.question.name}
    said |= {"kind": roles.kind, "also": roles.also, "cause": roles.cause and roles.cause.name}
    return said | {ours: column.name for ours, column in roles.named.items()}


def check(case, found):
    """The outcome is the one that is expected, or another that the case accepts."""
    expected, verdict = case["expect"], verdict_of(found)
    accepted = case.get("accept", [])
    if verdict != expected["verdict"]:
        score = f"take:{found.score[0].name}" if verdict == "take" else ""
        assert {verdict, score} & {*accepted, expected.get("accept", "")} - {""}, f"{verdict}: {found}"
    elif verdict == "take":
        wanted = {name: value for name, value in expected.items() if name not in ("verdict", "rows")}
        wanted["score"] = sorted(wanted["score"]) if isinstance(wanted["score"], list) else wanted["score"]
        roles = roles_in(found)
        assert {name: roles[name] for name in wanted} == wanted
        assert {*found.named} - {"repeat"} <= {*wanted}
    elif verdict == "ask":
        first = expected.get("first", [])
        assert (found.about, list(found.first[: len(first)])) == (expected["about"], first), found
        assert not first or "`columns=" in str(found) or "`measures=" in str(found)


@pytest.mark.parametrize("case", cases(lambda case: "rows" in case))
def test_the_roles_of_a_table_are_those_of_its_case(case):
    check(case, outcome(judge, case["rows"]))


@pytest.mark.parametrize("case", cases(lambda case: case["expect"]["verdict"] == "ask" and "rows" in case))
def test_every_way_that_is_offered_reads_the_table_or_asks_for_more(case, tmp_path):
    (path := tmp_path / "t.json").write_text(json.dumps(case["rows"]))
    asked = outcome(adapter.read, path, ReadOptions())
    if not isinstance(asked, AskError):
        assert "refuse" in case["accept"]
        return
    for choice in asked.choices:
        if "COLUMN" not in choice.said.values():
            found = outcome(adapter.read, path, ReadOptions(columns=dict(choice.said)))
            assert verdict_of(found) != "refuse", found


@pytest.mark.parametrize("case", cases(lambda case: case["shape"] in ("keyed", "lines")))
def test_the_rows_of_a_file_are_those_of_its_case(case, tmp_path):
    (file,) = case["files"]
    path = tmp_path / file["path"]
    path.write_text(file["text"])
    assert adapter.sniff(path) or case["expect"]["verdict"] == "refuse"
    try:
        said = {"rows": case["expect"]["rows"]} if "rows" in case["expect"] else {}  # and by no format that is known
        runs = adapter.read(path, ReadOptions(columns=said))
    except InputError as error:
        found = error
        verdict = "ask" if isinstance(error, AskError) else "refuse"
    else:
        (found,) = runs
        verdict = "take"
    expected = case["expect"]
    if verdict != expected["verdict"]:
        assert verdict == expected.get("accept"), found
    elif verdict == "take":
        for name in ("score", "question"):
            assert f"{name}: {expected[name]}" in noted(found)[0]
    elif verdict == "ask":
        first = expected["first"]
        assert (found.about, list(found.first[: len(first)])) == (expected["about"], first)
    elif "because" in expected:
        assert expected["because"] in str(found)


@pytest.mark.parametrize("case", cases(lambda case: case["shape"] == "paths"))
def test_what_paths_say_is_that_of_their_case(case):
    found = outcome(places_of, [PurePath(file["path"]) for file in case["files"]])
    expected = case["expect"]
    assert verdict_of(found) == expected["verdict"]
    if expected["verdict"] == "ask":
        assert found.about == expected["about"]
        return
    wanted = {name: "" if expected.get(name) == "one" else expected.get(name, "") for name in ("model", "repeat")}
    model = "" if expected.get("model") == "one" else found.model
    assert (model, found.repeat) == (wanted["model"], wanted["repeat"])
    assert found.task == expected.get("task", "")
