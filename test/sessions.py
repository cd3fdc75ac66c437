"""Programs that are told step by step what to do, so that several can have one file open at once; and what the
journal's records in a file say, read by nothing but docs/format.md."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys

SERVER = """
import json, os, sys, traceback
import h5py, numpy as np
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
names = {"h5py": h5py, "np": np, "os": os, "sys": sys}
for line in sys.stdin:
    names["result"] = None
    try:
        exec(compile(json.loads(line), "step", "exec"), names)
        answer = {"result": names["result"]}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}\\n{traceback.format_exc()}"}
    answers.write(json.dumps(answer) + "\\n")
    answers.flush()
"""


class Refused(Exception):
    """A step raised an exception; the text is that of the program."""


class Session:
    """A python with h5py, alive until it is ended or killed. Use it with `with`."""

    def __init__(self, env, prefix=(), **more):
        command = [*map(str, prefix), sys.executable, "-c", SERVER]
        more = {"stderr": subprocess.PIPE, **more}
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more
        )
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()

    def begin(self, code):
        """Tell a step without waiting for it."""
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, f"the program ended: {self.process.wait()}\n{self.process.stderr.read()[-3000:]}"
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def do(self, code):
        """Carry out a step; what it left in `result`."""
        self.begin(code)
        return self.answer()

    def end(self):
        """Let it reach its end, as programs do. Its exit code and what it printed as errors."""
        _, errors = self.process.communicate(timeout=WAITING)
        return self.process.returncode, errors

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.communicate(timeout=WAITING)


class Journal:
    """Numbers in a file's anchor and newest slot."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        self.size = len(data)
        anchor = None
        for at in range(512, min(len(data), 1 << 20), 512):
            if data[at : at + 8] == b"h5cowjnl":
                anchor = data[at : at + 512]
                break
        assert anchor, f"{path} has no journal"
        slots = [data[at : at + 512] for at in struct.unpack_from("<2Q", anchor, 48)]
        slots = [slot for slot in slots if slot[:8] == b"h5cowslt"]
        newest = max(slots, key=lambda slot: struct.unpack_from("<Q", slot, 24))
        self.generation, self.sequence, self.applied, self.end = struct.unpack_from("<4Q", newest, 24)
        self.protect = struct.unpack_from("<Q", newest, 64)[0]

    @property
    def pending(self):
        return self.applied < self.sequence


def stock_env(env):
    return {**env, "HDF5_PLUGIN_PATH": "/nowhere"}


def connector_env(env, plugins, options=""):
    return {**env, "HDF5_PLUGIN_PATH": str(plugins), "HDF5_VOL_CONNECTOR": f"h5cow {options}".strip()}


def is_root():
    return os.geteuid() == 0
