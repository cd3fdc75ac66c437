"""Power cuts and kills in the middle of gc --compact: compact_cuts.py, for some seconds. It is a process of its own, since it
waits for whatever a killed command leaves running."""

import os
import subprocess
import sys

from conftest import TEST
from seeds import seed
from waiting import WAITING


def test_power_cuts_and_kills_leave_the_old_file_or_the_new_one():
    env = {**os.environ, "H5COW_TEST_SEED": str(seed())}
    command = [sys.executable, "-B", TEST / "compact_cuts.py", "--states", "2000"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=WAITING)
    assert done.returncode == 0, done.stdout + done.stderr
