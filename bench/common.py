"""What the scripts that judge machmeter's figures share: runs, records, quiet, verdicts."""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = pathlib.Path(os.environ.get("MACHMETER", ROOT / "target/release/machmeter"))
# Where the hypervisor takes more of the CPU time, a figure shows nothing: neither a bar met nor one missed counts.
STEAL = 0.005
# Other tools run on this CPU, as ours do beside them.
CPU = 0
# One thread for STREAM; lmbench takes 50 ms a sample instead of looking for a time (minutes where the clock is noisy).
SETTINGS = {"OMP_NUM_THREADS": "1", "ENOUGH": "50000", "TIMING_O": "0", "LOOP_O": "0"}


class Bench:
    """A row of runs, and what the hypervisor took from the CPUs meanwhile."""

    def __init__(self):
        if not BINARY.exists():
            sys.exit("build first: make build")
        self.work = tempfile.TemporaryDirectory()
        os.environ["MACHMETER_STATE"] = f"{self.work.name}/state"
        self.before = cpu_times()

    def stolen(self, before=None):
        """Share of the CPU time that the hypervisor took since then, or since the beginning."""
        (stolen, all), (now_stolen, now_all) = before or self.before, cpu_times()
        return (now_stolen - stolen) / max(1, now_all - all)

    def run(self, arguments, limit_s=180):
        """Metrics and findings of one run; empty lists if there are none."""
        path = f"{self.work.name}/run.json"
        pathlib.Path(path).unlink(missing_ok=True)
        try:
            subprocess.run([BINARY, *arguments, "-q", f"--json={path}"], stdout=subprocess.DEVNULL, timeout=limit_s, check=False)
            record = json.load(open(path))
            for m in record["metrics"]:
                undisturbed = m.get("population") == "undisturbed"
                m["alone"] = undisturbed or "alone" in (m.get("ci") or {}).get("method", "")
            return record["metrics"], record["findings"]
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
            return [], []


class Busy:
    """Programs that want all CPUs."""

    def __init__(self, n):
        self.n = n

    def __enter__(self):
        self.all = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.n)]

    def __exit__(self, *_):
        for program in self.all:
            program.kill()
            program.wait()


def state(met, quiet=True):
    """What a bar is worth."""
    return "not shown" if not quiet else "pass" if met else "MISSED"


def cpu_times():
    """Steal and all, in ticks, of all CPUs."""
    fields = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return fields[7], sum(fields)


def all_of(metrics, id, wanted):
    """Metrics with a value and these parameters."""
    return [m for m in metrics if m["id"] == id and m["value"] is not None and all(m["params"].get(k) == v for k, v in wanted.items())]


def find(metrics, id, wanted):
    """The first of them, or nothing."""
    return next(iter(all_of(metrics, id, wanted)), None)


def median(values):
    """The median, or nothing."""
    return statistics.median(values) if values else None


def said(command, pattern, pinned=True, group=1):
    """Figures that a tool prints, of several groups those of each match together; none if it is not installed, says nothing or does not come back in time."""
    if not shutil.which(command[0]):
        return []
    if pinned:
        command = ["taskset", "-c", str(CPU), *command]
    # A process group of its own: some tools leave a child behind when they are ended.
    tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                            env={**os.environ, **SETTINGS})
    try:
        text = tool.communicate(timeout=30)[0]
    except subprocess.TimeoutExpired:
        # What it said so far counts.
        os.killpg(tool.pid, 9)
        text = tool.communicate()[0]
    try:
        os.killpg(tool.pid, 9)
    except ProcessLookupError:
        pass
    found = re.finditer(pattern, text, re.M)
    return [tuple(map(float, m.group(*group))) if isinstance(group, tuple) else float(m.group(group)) for m in found]


def chase(size):
    """multichase, best of four half seconds in a random order over all of it."""
    return median(said(["multichase", "-n", "4", "-s", "64", "-m", size, "-T", size], r"^\s*([\d.]+)\s*$"))


def c2clat(samples, *options):
    """c2clat, ns one way between the first two CPUs: the best of its samples. It cuts fractions off, so half a nanosecond is missing."""
    return [ns + 0.5 for ns in said(["c2clat", "-s", str(samples), *options], r"^\s*0\s+0\s+(\d+)", pinned=False)]
