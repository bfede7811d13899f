"""`python -m harness_noise`."""

import sys

from .cli import main

sys.exit(main())
