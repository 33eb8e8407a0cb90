"""The number of processors that this process may use."""

import os
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from pathlib import Path

# Docker, Kubernetes and systemd limit the processor time of a service by its control group (version 2).
OWN_GROUP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")


def usable_processors(*, own_group: Path = OWN_GROUP, groups: Path = GROUPS) -> int:
    """Return the number of processors that the affinity and the control group allow; a part of one counts as one."""
    has_affinity = hasattr(os, "sched_getaffinity")
    processors = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min([processors, *map(ceil, group_limits(own_group, groups))])


def group_limits(own_group: Path, groups: Path) -> Iterator[float]:
    """Yield the limits of this process's control group and of the groups that contain it, in processors."""
    with suppress(OSError):  # other systems have no control groups
        for line in own_group.read_text().splitlines():
            if line.startswith("0::/"):
                group = groups / line.removeprefix("0::/")
                for directory in (group, *group.parents):
                    yield from limit_of(directory)


def limit_of(group: Path) -> Iterator[float]:
    """Yield the limit of a control group, if it has one: `cpu.max` contains `max 100000` or `150000 100000`."""
    with suppress(FileNotFoundError):
        time, period = (group / "cpu.max").read_text().split()
        if time != "max":
            yield int(time) / int(period)
