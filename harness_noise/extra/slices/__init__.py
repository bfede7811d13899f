"""Means and differences slice by slice, of the questions that have one value of a field: the keyword `by`."""

from ...extras import Extra, Keyword

EXTRA = Extra(
    keywords={"by": Keyword("cutting", "analyze compare arena unpaired", display="report")},
    notes={
        "no_slices": "a field that makes no slices",
        "not_in_a_slice": "questions that are in no slice",
        "slices_unweighted": "slices of a group with weights",
    },
)
