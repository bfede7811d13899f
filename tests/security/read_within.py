"""Reads files within a limit of memory: `python read_within.py BYTES PATH…` prints for each the exit code and stderr.

The last line is the peak of the process's memory in bytes. A crash ends it early, which is a finding.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
import time

from harness_noise.cli import main

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
    for path in sys.argv[2:]:
        said, shown, start = io.StringIO(), io.StringIO(), time.process_time()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown):
            try:
                code: object = main(["analyze", path, "--format", "json"])
            except BaseException as error:
                code = f"{type(error).__name__}: {error}"[:300]
        seconds = round(time.process_time() - start, 1)
        print(json.dumps([path, code, said.getvalue()[-3000:], len(shown.getvalue()), seconds]), flush=True)
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))
