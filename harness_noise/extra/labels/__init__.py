"""People's labels of a random part of the answers: which are drawn, and the scores of a judge that they correct."""

from ...extras import Extra

EXTRA = Extra(
    keywords=dict.fromkeys(("labels", "labels_scorer", "label_range", "labels_at_random"), "asking"),
)
