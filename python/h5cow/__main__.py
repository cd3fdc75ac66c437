"""`python -m h5cow` and the console script `h5cow` are the command: this process becomes it."""

import os
import sys

from ._command import COMMAND, check_installed, environment, other_plugin_folders
from ._errors import Error


def main() -> int:
    arguments = sys.argv[1:]
    try:
        check_installed()
        env = environment()
        if arguments[:1] in (["run"], ["env"]) and not env.get("HDF5_PLUGIN_PATH"):
            env["HDF5_PLUGIN_PATH"] = ":".join(other_plugin_folders())
        os.execve(COMMAND, ["h5cow", *arguments], env)
    except (Error, OSError) as error:
        print(f"h5cow: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
