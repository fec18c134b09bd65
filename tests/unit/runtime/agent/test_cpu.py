"""The processor as cards: a core each where that can be told, honest shares where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from ninefold_runtime.agent.readers.cpu import CpuReader


class Machine:
    """Folders that look like those of a kernel."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\n")
        self.ticks({0: (0, 0), 1: (0, 0), 2: (0, 0)})

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def ticks(self, cores: dict[int, tuple[int, int]]) -> None:
        """(busy, idle) of each core; a fifth of the idle time is waiting for disks."""
        rows = [
            f"cpu{core} {busy - busy // 2} 0 {busy // 2} {idle - idle // 5} {idle // 5} 0 0 0 9 9"
            for core, (busy, idle) in cores.items()
        ]
        self.write("proc/stat", "\n".join(["cpu 1 2 3 4 5 6 7 8 0 0", *rows, "intr 5", ""]))

    def values(self, reader: CpuReader) -> dict[tuple[str, str], float]:
        reading = reader.read()
        assert not reading.error
        return {
            (sample.labels["card"], sample.name.removeprefix("ninefold_cpu_")): sample.value
            for sample in reading.samples
        }


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_with_one_card_a_core_each_shows_its_own_load(machine: Machine) -> None:
    reader = CpuReader(node="n", cores=[0, 2], root=machine.root)
    machine.ticks({0: (50, 50), 1: (0, 100), 2: (100, 0)})
    values = machine.values(reader)
    assert values["0", "utilization_percent"] == 50
    # The second card is the second core that may be used, whatever its number.
    assert values["1", "utilization_percent"] == 100


def test_with_another_number_of_cards_each_shows_the_load_of_all(machine: Machine) -> None:
    reader = CpuReader(node="n", cards=4, cores=[0, 1], root=machine.root)
    machine.ticks({0: (100, 0), 1: (0, 100), 2: (0, 0)})
    values = machine.values(reader)
    assert [values[str(card), "utilization_percent"] for card in range(4)] == [50.0] * 4


def test_loads_are_of_the_time_since_the_last_look(machine: Machine) -> None:
    reader = CpuReader(node="n", cores=[0], root=machine.root)
    assert ("0", "utilization_percent") not in machine.values(reader)
    machine.ticks({0: (100, 0)})
    assert machine.values(reader)["0", "utilization_percent"] == 100
    machine.ticks({0: (100, 400)})
    assert machine.values(reader)["0", "utilization_percent"] == 0


def test_shares_of_memory_add_up_to_the_machine(machine: Machine) -> None:
    values = machine.values(CpuReader(node="n", cards=4, cores=[0, 1], root=machine.root))
    assert sum(values[str(card), "memory_total_bytes"] for card in range(4)) == 1000 * 1024
    assert sum(values[str(card), "memory_used_bytes"] for card in range(4)) == 600 * 1024


def test_the_hottest_sensor_of_the_processor_counts_and_no_other(machine: Machine) -> None:
    for number, (kind, value) in enumerate(
        [("x86_pkg_temp", 51_000), ("acpitz", 90_000), ("x86_pkg_temp", 63_500)]
    ):
        machine.write(f"sys/class/thermal/thermal_zone{number}/type", f"{kind}\n")
        machine.write(f"sys/class/thermal/thermal_zone{number}/temp", f"{value}\n")
    machine.write("sys/class/hwmon/hwmon0/name", "nvme\n")
    machine.write("sys/class/hwmon/hwmon0/temp1_input", "80000\n")
    reader = CpuReader(node="n", cores=[0], root=machine.root)
    assert machine.values(reader)["0", "temperature_celsius"] == 63.5


def test_the_clock_is_that_of_the_core(machine: Machine) -> None:
    machine.write("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "2400000\n")
    values = machine.values(CpuReader(node="n", cores=[0, 2], root=machine.root))
    assert values["1", "clock_hertz"] == 2.4e9
    assert ("0", "clock_hertz") not in values


def test_a_kernel_that_stops_telling_is_trouble(machine: Machine) -> None:
    reader = CpuReader(node="n", cores=[0], root=machine.root)
    (machine.root / "proc/stat").unlink()
    assert reader.read().error.startswith("/proc/stat cannot be read")


def test_this_machine_can_be_read() -> None:
    reading = CpuReader(node="here").read()
    assert not reading.error
    assert {sample.labels["node"] for sample in reading.samples} == {"here"}
