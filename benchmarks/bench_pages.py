"""The page of a leaderboard of 300 models × 2,000 questions: its size, and how soon Chromium shows it.

    python benchmarks/bench_pages.py

Needs chromium and chromedriver; without them only the size is measured.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from table import Row, parser, show, size

from harness_noise.extra.arena import pages
from harness_noise.extra.arena.build import arena
from harness_noise.settings import Settings
from support.boards import leaderboard

ROUNDS = size(5, 1)


def painted(page: Path, profile: str) -> tuple[float, float]:
    """Seconds until the first paint and until everything is there, each the median of some visits."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    window = Chrome(options=options, service=ChromeService(shutil.which("chromedriver")))
    script = """const [done] = arguments;
        new PerformanceObserver(list => {
            const [first] = list.getEntriesByName('first-contentful-paint');
            if (first) done([first.startTime, performance.getEntriesByType('navigation')[0].loadEventEnd]);
        }).observe({type: 'paint', buffered: true});"""
    found = []
    try:
        for _ in range(ROUNDS):
            window.get("about:blank")
            window.get(page.as_uri())
            found.append(window.execute_async_script(script))  # once it has painted
    finally:
        window.quit()
    first, all_ = (sorted(item[i] for item in found)[ROUNDS // 2] / 1000 for i in range(2))
    return first, all_


def main() -> int:
    parser(__doc__).parse_args()
    M, N = size(300, 20), size(2000, 50)
    with tempfile.TemporaryDirectory() as folder:
        page = pages.write_arena(arena(leaderboard(M, N), Settings()), Path(folder))[1]
        rows = [Row(f"page of {M} models × {N:,} questions", page.stat().st_size / 1e6, "a file of 5 MB", 5, 1, "MB")]
        if shutil.which("chromium") and shutil.which("chromedriver"):
            first, all_ = painted(page, f"{folder}/profile")
            rows.append(Row("its first paint in Chromium", first, "2 s", 2, 1))
            rows.append(Row("all of it read and laid out", all_, "5 s", 5, 1))
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())
