"""What was seen in a run, a line of JSON for docs/reliability.md (reliability.py): tests and programs append it."""

import json
import os


def results(item, what, result, command):
    """Write it down where a reliability run is at work (H5COW_RESULTS), else nowhere."""
    if os.environ.get("H5COW_RESULTS"):
        with open(os.environ["H5COW_RESULTS"], "a") as file:
            file.write(json.dumps({"item": item, "what": what, "result": result, "command": command}) + "\n")
