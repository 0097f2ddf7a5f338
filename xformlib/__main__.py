"""``python -m xformlib``."""

from __future__ import annotations

import sys

from xformlib.cli import main

sys.exit(main())
