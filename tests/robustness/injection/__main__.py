"""``python -m tests.robustness.injection``: trials by seed; exits with 1 if one does not hold."""

from __future__ import annotations

import sys

from tests.robustness.injection.command import main

if __name__ == "__main__":
    sys.exit(main())
