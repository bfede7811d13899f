"""Commands that write are killed, and stopped by Ctrl-C, at points and moments chosen by a pinned seed.

`make faults` walks every point; see campaign.py for what is looked at after each.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.slow import rest_slow

CAMPAIGN = Path(__file__).with_name("campaign.py")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks a process that has imported everything")
@pytest.mark.parametrize(
    ("cases", "counts", "total", "needs"),
    [
        ("arena", (4, 1, 1, 2, 1, 1), 10, "numpy"),
        *rest_slow(
            [
                ("lm-eval,lm-eval in place", (10, 3, 2, 8, 6, 3), 64, "numpy"),
                ("inspect,inspect in place", (9, 2, 2, 5, 5, 2), 50, "inspect_ai"),
                ("arena", (10, 3, 2, 8, 6, 3), 32, "numpy"),
                ("arena pages", (7, 0, 0, 3, 0, 0), 10, "numpy"),
            ],
            quick=0,
        ),
    ],
)
def test_every_state_is_whole_and_the_next_run_ends_it(cases, counts, total, needs, tmp_path):
    pytest.importorskip(needs)
    kinds = ("walk", "part", "pair", "stop", "random", "stop-random")
    arguments = [word for kind, n in zip(kinds, counts, strict=True) for word in (f"--{kind}", str(n))]
    done = subprocess.run(
        [sys.executable, str(CAMPAIGN), "--cases", cases, *arguments], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{total} faults, every state whole" in done.stdout
    # a campaign that never finds anything half done has not looked
    assert re.search(r"(walk|part): (nothing yet|a part), a temporary file", done.stdout)
    assert re.search(r"stop: (nothing yet|a part)$", done.stdout, re.M)
