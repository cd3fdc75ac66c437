"""Tests from outside find the runners beside them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
