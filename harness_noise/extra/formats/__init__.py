"""Formats of other harnesses, by their words in the core: `harness_noise_adapters/extra/formats/` has them."""

from ...extras import Extra

EXTRA = Extra(
    words={
        "--as": "every-eval-ever",
        "no place": ", and `harness-noise export {path} --as every-eval-ever -o DIR` writes them to files of another "
        "format",
    },
)
