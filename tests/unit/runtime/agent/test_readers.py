"""What vendors' tools print becomes the series of their exporters, and nothing is made up."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from ninefold_runtime.agent.card_samples import CardReading, CardSample, format_exposition
from ninefold_runtime.agent.readers import choose_reader, vendor_tools
from ninefold_runtime.agent.readers.vendor_tools import AscendReader, NvidiaReader, VendorTool

#: A sound card, one that has neither ECC nor a memory sensor, and one that fell off the bus.
SOUND = (
    "0, GPU-1b9e2d3c-0f1a-4d53-8a7e-5e1f6f0d9a11, 00000000:1B:00.0, NVIDIA H100 80GB HBM3, "
    "97, 70213, 10875, 61, 74, 643.17, 1980, 2619, 3, 0"
)
PLAIN = (
    "1, GPU-77aa11bb-2222-4333-8444-555566667777, 00000000:3D:00.0, NVIDIA GeForce RTX 4090, "
    "0, 1, 24081, 33, [N/A], 18.55, 210, 405, [N/A], [N/A]"
)
LOST = ", ".join(["2", *["[GPU is lost]"] * 13])
NVIDIA = f"{SOUND}\n{PLAIN}\n{LOST}\n"
LINE = "+------------------------------------------------------------------------------------------------+\n"
#: Of an Atlas A3: two dies a card, of which the first shows the power of both.
A3 = (
    LINE
    + """\
| npu-smi 25.2.1                   Version: 25.2.1                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 1     Ascend910           | OK            | 168.1       37                0    / 0             |
| 0     2                   | 0000:99:00.0  | 41          0    / 0          3125 / 65536         |
+------------------------------------------------------------------------------------------------+
| 1     Ascend910           | Alarm         | -           36                0    / 0             |
| 1     3                   | 0000:9B:00.0  | 0           0    / 0          2882 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 1       0                 | 41033         | python3.11               | 2811                    |
"""
)
#: Of Atlas 800T A2, one die a card; and of a 310P, whose memory is no HBM.
A2 = """\
| 6     910B3               | OK            | 95.6        48                0    / 0             |
| 0                         | 0000:42:00.0  | 12          0    / 0          58210/ 65536         |
"""
INFERENCE = """\
| 2       310P3             | Warning       | NA           41                4     / 4           |
| 0       5                 | 0000:02:00.0  | 7            1523 / 21527                          |
"""


def named(samples: tuple[CardSample, ...], label: str) -> dict[tuple[str, str], float]:
    return {(sample.labels[label], sample.name): sample.value for sample in samples}


def saying(text: str, *, code: int = 0) -> VendorTool:
    """A tool that prints this."""
    script = f"import sys; sys.stdout.write({text!r}); sys.exit({code})"
    return VendorTool((sys.executable, "-c", script))


def test_each_card_of_nvidia_has_what_was_told_of_it_and_no_more() -> None:
    samples, unread = vendor_tools.parse_nvidia_smi(NVIDIA, node="n7")
    values = named(samples, "gpu")
    assert values["0", "DCGM_FI_DEV_GPU_UTIL"] == 97
    assert values["0", "DCGM_FI_DEV_FB_USED"] + values["0", "DCGM_FI_DEV_FB_FREE"] == 81088
    assert values["0", "DCGM_FI_DEV_POWER_USAGE"] == 643.17
    assert values["0", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"] == 3
    assert ("1", "DCGM_FI_DEV_MEMORY_TEMP") not in values
    assert ("1", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL") not in values
    assert unread == ("2",)
    assert {sample.labels["Hostname"] for sample in samples} == {"n7"}
    assert samples[0].labels["UUID"] == "GPU-1b9e2d3c-0f1a-4d53-8a7e-5e1f6f0d9a11"


def test_a_lost_card_is_trouble_and_the_others_are_read_all_the_same() -> None:
    reading = NvidiaReader(node="n7", tool=saying(NVIDIA)).read()
    assert reading.error == "cards that do not answer: 2"
    assert {sample.labels["gpu"] for sample in reading.samples} == {"0", "1"}


def test_the_complaint_of_a_tool_that_fails_is_the_trouble() -> None:
    complaint = "Unable to determine the device handle for GPU0000:BA:00.0: Unknown Error\n"
    reading = NvidiaReader(node="n7", tool=saying(complaint, code=15)).read()
    assert reading.samples == ()
    assert reading.error.endswith(f"ended with 15: {complaint.strip()}")


def test_a_tool_that_lists_nothing_is_trouble() -> None:
    assert NvidiaReader(node="n7", tool=saying("")).read() == CardReading(
        error="nvidia-smi lists no card"
    )
    assert AscendReader(tool=saying(LINE)).read() == CardReading(error="npu-smi lists no card")


def test_dies_of_one_card_are_told_apart_by_their_number_on_the_node() -> None:
    values = named(tuple(vendor_tools.parse_npu_smi(A3)), "id")
    assert values["2", "npu_chip_info_utilization"] == 41
    assert values["2", "npu_chip_info_power"] == 168.1
    assert values["2", "npu_chip_info_hbm_used_memory"] == 3125
    assert values["2", "npu_chip_info_health_status"] == 1
    assert values["3", "npu_chip_info_health_status"] == 0
    assert ("3", "npu_chip_info_power") not in values
    assert {card for card, _ in values} == {"2", "3"}


def test_a_card_with_one_die_goes_by_its_own_number() -> None:
    values = named(tuple(vendor_tools.parse_npu_smi(A2)), "id")
    assert values["6", "npu_chip_info_hbm_used_memory"] == 58210
    assert values["6", "npu_chip_info_temperature"] == 48


def test_memory_that_is_no_hbm_has_the_other_name() -> None:
    values = named(tuple(vendor_tools.parse_npu_smi(INFERENCE)), "id")
    assert values["5", "npu_chip_info_used_memory"] == 1523
    assert ("5", "npu_chip_info_hbm_used_memory") not in values
    assert ("5", "npu_chip_info_power") not in values


def test_a_tool_that_hangs_is_given_up_and_not_started_again_while_it_is_stuck(
    tmp_path: Path,
) -> None:
    starts = tmp_path / "starts"
    script = f"open({str(starts)!r}, 'a').write('x'); import time; time.sleep(60)"
    tool = VendorTool((sys.executable, "-c", script), limit_seconds=0.5)
    began = time.monotonic()
    assert "did not answer in 0.5 s" in tool.run().error
    assert time.monotonic() - began < 5
    # One that can be killed is gone, and the next look may try again.
    assert "did not answer" in tool.run().error
    assert starts.read_text() == "xx"


def test_a_process_that_cannot_be_killed_is_not_joined_by_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = tmp_path / "starts"
    script = f"open({str(starts)!r}, 'a').write('x'); import time; time.sleep(3)"
    tool = VendorTool((sys.executable, "-c", script), limit_seconds=0.5)
    with monkeypatch.context() as immortal:
        immortal.setattr("subprocess.Popen.kill", lambda process: None)
        assert "did not answer" in tool.run().error
        assert "does not end; a card may have fallen off the bus" in tool.run().error
    assert starts.read_text() == "x"
    assert tool._stuck is not None
    tool._stuck.kill()
    tool._stuck.wait(5)


def test_a_tool_that_is_not_there_is_named() -> None:
    assert VendorTool(("no-such-smi",)).run().error == (
        "no-such-smi cannot be run: No such file or directory"
    )


@pytest.mark.parametrize(
    ("program", "vendor"), [("nvidia-smi", "nvidia"), ("npu-smi", "ascend"), (None, "cpu")]
)
def test_the_reader_is_chosen_by_what_is_there(program: str | None, vendor: str) -> None:
    found = choose_reader(
        "auto", node="n", cards=0, which=lambda name: f"/bin/{name}" if name == program else None
    )
    assert found.vendor == vendor


def test_what_is_not_a_number_is_not_printed_and_labels_are_escaped() -> None:
    text = format_exposition(
        [
            CardSample(name="a", value=float("nan")),
            CardSample(name="b", value=float("inf"), labels={"gpu": "0"}),
            CardSample(name="c", value=2.0**60, labels={"name": 'a"b\\c\nd'}),
            CardSample(name="d", value=0.25),
        ]
    )
    assert text == 'c{name="a\\"b\\\\c\\nd"} 1.152921504606847e+18\nd 0.25\n'
