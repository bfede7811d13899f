"""What `make guests` calls the same: the lists that it reads, and the comparison of three runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from guests import run

LISTS = Path(run.__file__).parent / "lists"
PLAIN = {"a": "passed", "b": "failure", "c": "skipped"}


def ways(**others: dict[str, str] | None) -> dict[str, dict[str, str] | None]:
    return {"without": dict(PLAIN), "with": dict(PLAIN), "on": dict(PLAIN)} | others


def test_equal_outcomes_are_no_difference_even_where_tests_fail() -> None:
    assert run.differences(ways(), {}) == ([], set())


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (PLAIN | {"a": "failure"}, "a: passed without, failure on"),
        (PLAIN | {"b": "passed"}, "b: failure without, passed on"),
        (PLAIN | {"d": "passed"}, "d: absent without, passed on"),
        ({"a": "passed", "b": "failure"}, "c: skipped without, absent on"),
        (None, "ended without us, not on"),
    ],
)
def test_a_difference_is_said_in_both_directions(after: dict[str, str] | None, words: str) -> None:
    assert run.differences(ways(on=after), {}) == ([words], set())


def test_a_difference_that_is_meant_has_to_be_there() -> None:
    meant = {("on", "a"): "why"}
    assert run.differences(ways(on=PLAIN | {"a": "failure"}), meant) == ([], {("on", "a")})
    (words,), seen = run.differences(ways(), meant)
    assert words == "a: passed in both, though a difference on is listed as meant"
    assert seen == set()
    # a test of another part says nothing of this one
    assert run.differences(ways(), {("on", "z"): "why"}) == ([], set())


@pytest.mark.parametrize("before", [None, {}, {"a": "failure"}])
def test_nothing_is_called_equal_where_nothing_was_compared(before: dict[str, str] | None) -> None:
    (words,), _ = run.differences(dict.fromkeys(("without", "with", "on"), before), {})
    assert "nothing was compared" in words


def test_parts_and_what_is_left_out_of_them(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(
        "one.py two.py  # words\n\n# more\nfolder\n-two.py::test_x  # asks the network\n-folder/t.py::y  # z\n"
    )
    first, second = run.parts(path)
    assert first == run.Part(("one.py", "two.py"), ("two.py::test_x",))
    assert second == run.Part(("folder",), ("folder/t.py::y",))
    assert run.chosen_parts([first, second], "fold*", "1/1") == [second]
    assert run.chosen_parts([first, second] * 3, None, "2/4") == [second, second]
    path.write_text("one.py\n-one.py::test_x\n")
    with pytest.raises(SystemExit, match="say after a #"):
        run.parts(path)


@pytest.mark.parametrize("name", run.GUESTS)
def test_every_list_can_be_read_and_names_a_file_once(name: str) -> None:
    every = run.parts(LISTS / f"{name}.txt")
    paths = [path for part in every for path in part.paths]
    assert len(paths) == len(set(paths)) > 0
    left_out = [said for said, _ in run.lines(LISTS / f"{name}.txt") if said.startswith("-")]
    assert len(left_out) == sum(len(part.deselected) for part in every)
    run.meant(LISTS / f"{name}.differ.txt")
