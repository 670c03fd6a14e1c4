"""``python -m kernel_scientist.agents.cli``: the same as the command ``kernel-scientist``."""

from __future__ import annotations

import sys

from . import main

sys.exit(main())
