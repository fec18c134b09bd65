"""The processor, as the cards that the cluster on this machine shows.

A card is one core where there are as many cards as usable cores: work on card *i* is kept to the *i*-th of them,
so its load is that core's. With any other number nobody can say which core is whose, and each card shows the load
of all. Memory is not divided among cards either; each shows an equal share, so that the sum over the cards is the
machine's. Temperature is that of the package, the same for all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ninefold_runtime.agent.card_samples import CardReading, CardSample

#: Sensors that are the processor's, as kernels call them.
_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc_thermal", "cpuss")
_CHIPS = ("coretemp", "k10temp", "zenpower")
#: Columns of ``/proc/stat`` in which a core did nothing: idle and iowait.
_IDLE = slice(3, 5)
#: user to steal; guest time is in user already.
_ALL = slice(0, 8)
#: Fewer, of a hundredth of a second each, give no reliable load.
_FEWEST_TICKS = 20

Ticks = tuple[int, int]


class CpuReader:
    """Implements ``Reader``; ``root`` is where proc and sys are mounted."""

    vendor = "cpu"

    def __init__(
        self,
        *,
        node: str,
        cards: int = 0,
        cores: Sequence[int] | None = None,
        root: Path = Path("/"),
    ) -> None:
        self._node = node
        self._cores = sorted(os.sched_getaffinity(0) if cores is None else cores)
        self._cards = cards or len(self._cores)
        self._root = root
        self._before = self._read_ticks()

    def read(self) -> CardReading:
        """Loads cover the time since the last read; there is none where that is too short."""
        try:
            now = self._read_ticks()
        except (OSError, ValueError) as error:
            return CardReading(error=f"/proc/stat cannot be read: {error}")
        before, self._before = self._before, now
        loads = {
            core: _core_utilization(before[core], now[core]) for core in now.keys() & before.keys()
        }
        used, total = self._read_memory()
        temperature = self._read_temperature()
        samples: list[CardSample] = []
        for card in range(self._cards):
            metrics = {
                "utilization_percent": self._load_of(card, loads),
                "memory_used_bytes": used / self._cards if total else None,
                "memory_total_bytes": total / self._cards if total else None,
                "temperature_celsius": temperature,
                "clock_hertz": self._clock_of(card),
            }
            samples += _card_samples(metrics, card=card, node=self._node)
        return CardReading(samples=tuple(samples))

    def _cores_of(self, card: int) -> Sequence[int]:
        return [self._cores[card]] if self._cards == len(self._cores) else self._cores

    def _load_of(self, card: int, loads: Mapping[int, float | None]) -> float | None:
        return _mean_of_known(loads.get(core) for core in self._cores_of(card))

    def _clock_of(self, card: int) -> float | None:
        folder = self._root / "sys/devices/system/cpu"
        kilohertz = [
            _read_number(folder / f"cpu{core}/cpufreq/scaling_cur_freq")
            for core in self._cores_of(card)
        ]
        mean = _mean_of_known(kilohertz)
        return None if mean is None else mean * 1000

    def _read_ticks(self) -> dict[int, Ticks]:
        """(idle, all) of each usable core.

        :raises OSError: if the kernel does not provide it.
        """
        ticks = {}
        for line in (self._root / "proc/stat").read_text(encoding="ascii").splitlines():
            name, *columns = line.split()
            if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in self._cores:
                counts = [int(column) for column in columns[_ALL]]
                ticks[int(name[3:])] = (sum(counts[_IDLE]), sum(counts))
        return ticks

    def _read_memory(self) -> tuple[int, int]:
        """Used and total bytes of the machine; zeros where the kernel does not provide them."""
        try:
            lines = (self._root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        except OSError:
            return 0, 0
        kilobytes = {
            name: int(rest.split()[0])
            for name, _, rest in (line.partition(":") for line in lines)
            if name in ("MemTotal", "MemAvailable")
        }
        if len(kilobytes) != 2:
            return 0, 0
        total = kilobytes["MemTotal"] * 1024
        return total - kilobytes["MemAvailable"] * 1024, total

    def _read_temperature(self) -> float | None:
        """The hottest of the processor's sensors; virtual machines have none."""
        found = [*self._read_sensors("thermal/thermal_zone*", "type", _ZONES, "temp")]
        found += self._read_sensors("hwmon/hwmon*", "name", _CHIPS, "temp1_input")
        return max(found, default=None)

    def _read_sensors(
        self, pattern: str, kind: str, kinds: Sequence[str], value: str
    ) -> Iterator[float]:
        for folder in sorted((self._root / "sys/class").glob(pattern)):
            try:
                name = (folder / kind).read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError):
                continue
            millidegrees = _read_number(folder / value) if name.startswith(tuple(kinds)) else None
            if millidegrees is not None:
                yield millidegrees / 1000


def _core_utilization(before: Ticks, now: Ticks) -> float | None:
    idle, passed = now[0] - before[0], now[1] - before[1]
    if passed < _FEWEST_TICKS:
        return None
    # Counters of idle time may step back a little on some kernels.
    return min(100.0, max(0.0, 100.0 * (1 - idle / passed)))


def _mean_of_known(values: Iterator[float | None] | Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _read_number(path: Path) -> float | None:
    try:
        return float(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _card_samples(
    metrics: Mapping[str, float | None], *, card: int, node: str
) -> Iterator[CardSample]:
    labels = {"card": str(card), "node": node}
    for name, value in metrics.items():
        if value is not None:
            yield CardSample(name=f"ninefold_cpu_{name}", value=round(value, 3), labels=labels)
