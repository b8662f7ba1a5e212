"""What the scripts that judge machmeter's figures share: runs, records, quiet, verdicts."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "target/release/machmeter"
# Where the hypervisor takes more of the CPU time, a figure shows nothing: neither a bar met nor one missed counts.
STEAL = 0.005


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

    def run(self, arguments):
        """Metrics and findings of one run; empty lists if there are none."""
        path = f"{self.work.name}/run.json"
        pathlib.Path(path).unlink(missing_ok=True)
        try:
            subprocess.run([BINARY, *arguments, "-q", f"--json={path}"], stdout=subprocess.DEVNULL, timeout=180, check=False)
            record = json.load(open(path))
            return record["metrics"], record["findings"]
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
            return [], []



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
