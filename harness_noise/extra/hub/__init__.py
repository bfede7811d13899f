"""Results as the Hugging Face Hub shows them on a model's page: `export RUN --as hub`."""

from ...extras import Extra

EXTRA = Extra(forms={"hub": "write"}, words={"--as": "hub (a model's page on the Hugging Face Hub)"})
