"""The floor that the service is measured against: an interpreter with the three libraries, forked per program,
with no confinement, no supervision and no HTTP. Reads {"code", "count"} lines, answers lists of milliseconds."""

import io
import json
import os
import sys
import time

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot  # noqa: E402, F401
import numpy  # noqa: E402, F401
import pandas  # noqa: E402


# Warm, as the service's zygote is: fonts, a first picture, a first group-by.
matplotlib.pyplot.plot([1, 2])
matplotlib.pyplot.title("warm")
matplotlib.pyplot.savefig(io.BytesIO())
matplotlib.pyplot.close("all")
pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}).groupby("b").sum().to_string()


def run_once(code: str) -> float:
    """Forks, runs `code` with its output in a pipe, reads that to its end and reaps. Answers the time in ms."""
    start = time.perf_counter()
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.dup2(writer, 1)
        exec(compile(code, "main.py", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()
        os._exit(0)
    os.close(writer)
    while os.read(reader, 1 << 16):
        pass
    os.close(reader)
    _, status = os.waitpid(process, 0)
    if status != 0:
        raise SystemExit(f"the program of the floor failed with status {status}")
    return (time.perf_counter() - start) * 1000


print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    print(json.dumps([run_once(order["code"]) for _ in range(order["count"])]), flush=True)
