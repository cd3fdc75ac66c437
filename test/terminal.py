"""A program that has a terminal, and all that it writes there."""

import os
import pty
import subprocess
import threading

END = b"\0nothing more\0"


def all_on_a_terminal(*command, streams=("stdin", "stdout", "stderr"), **more):
    """What COMMAND writes to a terminal that is its STREAMS, and its exit code. MORE: Popen's.

    Its end of the terminal stays open until it has ended, and is the last to write. When nobody has it open any more, Linux may keep from a
    reader what it has not read yet: the program writes and ends while the reader, which had found nothing, is about to look for that.
    """
    ours, its = pty.openpty()
    child = subprocess.Popen(command, **{stream: its for stream in streams}, **more)
    threading.Thread(target=lambda: (child.wait(), os.write(its, END))).start()
    said = b""
    while not said.endswith(END):
        said += os.read(ours, 65536)
    os.close(ours)
    os.close(its)
    return said.removesuffix(END), child.wait()
