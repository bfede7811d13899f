"""Cluster SPECs: parsing, fields, paths and templates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_noise.data.clusters import ClusterSpec, MissingFieldError, check_tasks, namer, value_text
from harness_noise.errors import InputError

DOC = {"passage": "p", "idx": {"paragraph": 7, "list": ["a", "b"]}, "a.b": "dotted", "none": None, "n": 1.5, "ok": True}


@pytest.mark.parametrize(
    ("text", "task", "spec"),
    [
        ("passage", "drop", "passage"),
        (" passage ", "drop", "passage"),
        ("drop=passage", "drop", "passage"),
        ("drop=passage", "race", None),
        ("drop=passage,race=none", "race", "none"),
        ("drop=passage, mgsm_*=auto", "mgsm_de", "auto"),
        ("*=task,drop=passage", "drop", "task"),  # the first that matches wins
        ("t={{ [a, b] }}", "t", "{{ [a, b] }}"),
        ("{{a}}={{b}}", "t", "{{a}}={{b}}"),
        ("{{a == 1}}", "t", "{{a == 1}}"),
        ("t={{a}}|{{b}},u=x", "u", "x"),
        (None, "drop", None),
        ({"drop": "passage", "r*": "none"}, "race", "none"),
        ({"drop": "passage"}, "race", None),
    ],
)
def test_parse(text, task, spec):
    assert ClusterSpec.parse(text).for_task(task) == spec


@pytest.mark.parametrize("text", ["drop=passage", "dr*=passage,passage=text", "*=task", "passage", "inspect_evals/*=x"])
def test_a_task_that_is_there(text):
    check_tasks(ClusterSpec.parse(text), ["inspect_evals/drop", "passage"])


@pytest.mark.parametrize(("text", "named"), [("dorp=passage", "dorp=passage"), ("drop=a,mmlu=b", "mmlu=b")])
def test_a_task_that_is_not_there_is_an_error_that_lists_those_that_are(text, named):
    with pytest.raises(InputError, match=r"The tasks are inspect_evals/drop, t0, .*t18 and 11 more") as caught:
        check_tasks(ClusterSpec.parse(text), ["inspect_evals/drop", *(f"t{i}" for i in range(30))])
    assert str(caught.value).startswith(f"`cluster` {named}: there is no task ")


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_spec_is_an_error(text):
    with pytest.raises(InputError, match="empty"):
        ClusterSpec.parse(text)


@pytest.mark.parametrize("text", ["t={{a}},{{b}}", "drop=passage,story"])
def test_half_a_list_is_not_a_spec_for_all_tasks(text):
    with pytest.raises(InputError, match="is not TASK=SPEC"):
        ClusterSpec.parse(text)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("passage", "p"),
        ("idx.paragraph", "7"),
        ("idx.list.1", "b"),
        ("idx", '{"list": ["a", "b"], "paragraph": 7}'),
        ("a.b", "dotted"),
        ("n", "1.5"),
        ("ok", "true"),
        ("{{passage}}|{{idx.paragraph}}", "p|7"),
        ("{% if ok %}yes{% endif %}", "yes"),
        ("{{ passage.upper() }}", "P"),
    ],
)
def test_names(spec, name):
    assert namer(spec)(DOC) == name


@pytest.mark.parametrize("spec", ["passage", "passage*n"])
def test_spaces_around_a_text_do_not_count(spec):
    """As in a table's own column `cluster`: one passage would be two clusters, and the standard error too small."""
    assert namer(spec)({"passage": " p\n", "n": "1 "}) == namer(spec)({"passage": "p", "n": "1"})
    with pytest.raises(MissingFieldError):
        namer(spec)({"passage": " \n", "n": 1})


@pytest.mark.parametrize(
    "spec", ["nope", "idx.nope", "idx.list.2", "idx.list.²", "passage.x", "none", "{{nope}}", "{{idx.nope.x}}"]
)
def test_a_missing_field_lists_the_fields(spec):
    with pytest.raises(MissingFieldError, match=r"a\.b, idx, n, none, ok, passage") as caught:
        namer(spec)(DOC)
    assert caught.value.fields == sorted(DOC)
    assert caught.value.spec == spec
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize("spec", ["{{passage", "{% if %}"])
def test_a_broken_template_is_an_error_at_once(spec):
    with pytest.raises(InputError, match="not valid Jinja"):
        namer(spec)


@pytest.mark.parametrize("spec", ["{{passage + 1}}", "{{1 // 0}}", "{{ ''.__class__.__mro__[1].__subclasses__() }}"])
def test_a_template_that_fails_is_an_error(spec):
    with pytest.raises(InputError):
        namer(spec)(DOC)


def test_templates_cannot_change_the_document():
    doc = {"items": [1]}
    with pytest.raises(InputError):
        namer("{{ items.append(2) }}")(doc)
    assert doc == {"items": [1]}


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.lists(st.integers()), max_size=4))
def test_equal_values_have_equal_texts(value):
    name = value_text(value)
    assert name == value_text(dict(reversed(list(value.items()))))
    assert name != value_text({**value, "another": 0})


@given(st.text(min_size=1).filter(lambda text: text.strip() == text and not set(text) & set("=,{}*×")))
def test_a_plain_name_is_the_spec_for_every_task(name):
    assert ClusterSpec.parse(name).for_task("any") == name
