"""Damages real files and reads them, for as long as is asked: `make fuzz`, or
`PYTHONPATH=tests python -m fuzz.campaign [READER…] --seconds 600`.

Hypothesis draws the damage and, where something else comes of it than a refusal or whole results,
makes it as small as it can. A finding stops its reader; it is printed, its files are kept under
`--findings`, and it belongs into the tests.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fuzz import write_seeds
from fuzz.readers import READERS, Case, Reader, attack, cases

_ROUND = 500
"""Examples between two looks at the clock."""


def run(reader: Reader, seeds: Path, work: Path, seconds: float, start: int, n: int = _ROUND) -> Counter[bool]:
    """Attack one reader; how often a damaged file was used (True) and refused (False).

    Raises:
        Exception: the first finding, as small as hypothesis could make it.
    """
    outcomes: Counter[bool] = Counter()
    end = time.monotonic() + seconds
    strategies = list(cases(reader, seeds))
    phases = (Phase.generate, Phase.shrink)
    while True:

        @seed(start)
        @settings(max_examples=n, deadline=None, database=None, phases=phases, suppress_health_check=list(HealthCheck))
        @given(st.one_of(strategies))
        def one_round(case: Case) -> None:
            outcomes[attack(reader, case, work)] += 1

        one_round()
        start += 1
        if time.monotonic() >= end:
            return outcomes


def _told(error: BaseException) -> str:
    """The end of a traceback and the damage that led to it, neither of them endless."""
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(_told(item) for item in error.exceptions)
    last = traceback.format_exception(type(error), error, error.__traceback__, limit=-8, chain=False)
    notes = [note[:3000] for note in getattr(error, "__notes__", ())]
    return "\n".join(["".join(last)[:4000], *notes])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of {', '.join(READERS)}; default: all")
    parser.add_argument("--seconds", type=float, default=600, help="for each reader")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--seeds", type=Path, help="a folder that write_seeds.py has made")
    chosen = parser.parse_args()
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ResourceWarning)
    logging.disable()
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        seeds = chosen.seeds or Path(folder, "seeds")
        if chosen.seeds is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                write_seeds.main(seeds)
        for name in chosen.readers or READERS:
            work = Path(folder, name)
            work.mkdir()
            try:
                outcomes = run(READERS[name], seeds, work, chosen.seconds, chosen.seed)
            except Exception as error:
                found += 1
                shutil.copytree(work, chosen.findings / name, dirs_exist_ok=True)  # the last case is the smallest
                print(f"{name}: FOUND, with --seed {chosen.seed}\n{_told(error)}", flush=True)
            else:
                print(f"{name}: {outcomes[True]} files used, {outcomes[False]} refused", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
