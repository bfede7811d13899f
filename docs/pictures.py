"""The README's pictures: the page of a comparison, in light and dark, into docs/images.

    python docs/pictures.py

They show two of the demonstration's simulated models, whose answers are the same everywhere. `made_of.json` holds what
they were made of; tests/unit/test_pictures.py finds a picture stale when that has changed. Needs chromium,
chromedriver, selenium and Pillow (`make pictures` has them).
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "images"
MADE_OF = HERE / "made_of.json"
MOST = 150_000
"""Bytes of a picture."""
SCHEMES = ("light", "dark")
TYPED = "harness-noise compare run-a run-e"
LENGTH = "length of the question"


def simulated(name: str) -> Any:
    """The run of a simulated model: 200 word problems made from 20 templates, five answers each."""
    import numpy as np

    import harness_noise as hn
    from harness_noise_adapters.extra.demo.word_problems import MODELS, problems

    model = next(model for model in MODELS if model.name == name)
    asked = problems()
    right = [[model.answer(one, k).endswith(f" {one.answer}.") for k in range(5)] for one in asked]
    fields = hn.Fields({LENGTH: ["long" if len(one.question) > 90 else "short" for one in asked]})
    words = tuple(one.question for one in asked)
    questions = hn.Questions(tuple(one.id for one in asked), texts=words, fields=fields)
    scores = hn.Scores(
        "word_problems",
        "exact_match",
        "number",
        questions,
        np.array(right, dtype=float),
        higher_is_better=True,
        clusters=tuple(one.template for one in asked),
        cluster_spec="template",
    )
    return hn.Run(name, name.replace("sim", "run"), "lm-eval", scores=(scores,))


def compared() -> str:
    """Return the page of the comparison."""
    import harness_noise as hn

    pair = [simulated("sim-a"), simulated("sim-e")]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "compare.html"
        hn.write_html(hn.compare(*pair, by=LENGTH, by_question=True), page, command=TYPED)
        return page.read_text(encoding="utf-8")


def printed(result: Any, width: int) -> str:
    """What a terminal of that width shows of a result with `--quiet`."""
    from rich.console import Console

    from harness_noise.report import terminal as screen

    said = io.StringIO()
    console = Console(file=said, width=width, color_system=None, highlight=False, _environ={})
    console.print(screen.render(result, legend=False))
    return "\n".join(line.rstrip() for line in said.getvalue().strip("\n").splitlines())


def ingredients(page: str) -> dict[str, str]:
    """Return a hash of what the picture shows, without scripts, dates and versions."""
    seen = re.sub(r"<script.*?</script>|<meta.*?>|<footer>.*?</footer>", "", page, flags=re.S)
    return {"compare": hashlib.sha256(seen.encode()).hexdigest()}


def chromium(profile: str) -> Any:
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    return Chrome(options=options, service=ChromeService(shutil.which("chromedriver")))


def shot(window: Any, page: Path, scheme: str, width: int, height: int) -> bytes:
    """Return a picture of the page in this size."""
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    size = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": False}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    window.get(page.as_uri())
    taken: bytes = window.get_screenshot_as_png()
    return taken


def small(picture: bytes) -> bytes:
    """The picture in as many colours as its bytes allow."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in (128, 64, 32, 16):
        out = io.BytesIO()
        image.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
            out, "PNG", optimize=True
        )
        if out.tell() <= MOST:
            return out.getvalue()
    raise SystemExit("a picture is too large")


def main() -> int:
    HERE.mkdir(exist_ok=True)
    page = compared()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "compare.html").write_text(page, encoding="utf-8")
        window = chromium(f"{name}/profile")
        try:
            for scheme in SCHEMES:
                path = HERE / f"compare-{scheme}.png"
                path.write_bytes(small(shot(window, folder / "compare.html", scheme, 1000, 760)))
                print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
        finally:
            window.quit()
    MADE_OF.write_text(json.dumps(ingredients(page), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
