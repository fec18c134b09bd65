"""A vendor's file: what it says comes out in the product's units, and what is not understood is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.adapters.chips.profiles import VendorFileChipPlugin, read_vendor
from controlplane.adapters.chips.toml_sections import InvalidChipProfile
from controlplane.domain.common.accelerators import Dtype, ProfileConfidence
from controlplane.domain.common.resources import GIB
from controlplane.ports import adapter_registry

LEAST = 'vendor = "acme"\ntitle = "Acme"\n'
CHIP = '[[chips]]\nname = "acme-one"\nkind = "npu"\n'


def folder_of(tmp_path: Path, text: str, *, faults: str = "") -> Path:
    (tmp_path / "profile.toml").write_text(text, encoding="utf-8")
    if faults:
        (tmp_path / "faults.toml").write_text(faults, encoding="utf-8")
    return tmp_path


def test_what_nobody_published_stays_unknown(tmp_path: Path) -> None:
    (chip,) = read_vendor(folder_of(tmp_path, LEAST + CHIP)).chips

    assert chip.memory == 0
    assert chip.memory_bandwidth is None
    assert chip.peak_rates == {}
    assert chip.confidence is ProfileConfidence.VERIFIED
    assert chip.label == "acme-one"


def test_figures_come_out_in_bytes_and_operations_a_second(tmp_path: Path) -> None:
    text = (
        LEAST
        + '[usual]\nkind = "gpu"\nresource = "acme.com/gpu"\n'
        + '[[chips]]\nname = "acme-two"\nmemory_mib = 65536\nbandwidth_gb_s = 1600\n'
        + 'tflops = { bfloat16 = 313, int8 = 640 }\nrings = "0-3_4-7"\naliases = ["Acme Two"]\n'
    )
    (chip,) = read_vendor(folder_of(tmp_path, text)).chips

    assert chip.memory == 64 * GIB
    assert chip.memory_bandwidth == 1.6e12
    assert chip.peak_rates == {Dtype.BFLOAT16: 313e12, Dtype.INT8: 640e12}
    assert chip.rings == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert chip.aliases == {"acme two"}
    assert chip.resource == "acme.com/gpu"


def test_processes_get_the_variable_of_their_cards_and_the_constants(tmp_path: Path) -> None:
    text = LEAST + '[environment]\nACME_LOG = "0"\n' + CHIP + 'visible_devices_variable = "ACME"\n'
    plugin = VendorFileChipPlugin(folder_of(tmp_path, text))
    (chip,) = plugin.chips()

    assert plugin.environment(chip, cards=(2, 3)) == {"ACME_LOG": "0", "ACME": "2,3"}
    assert plugin.environment(chip, cards=()) == {"ACME_LOG": "0", "ACME": ""}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vendor = ", "cannot be read as TOML"),
        ('vendor = "acme"\n', "title is required"),
        (LEAST + "colour = 1\n", "colour is not known here"),
        (LEAST + CHIP + "memory_gb = 3\n", r"\(acme-one\): memory_gb is not known here"),
        (LEAST + CHIP + 'memory_mib = "64"\n', "memory_mib is '64', which is of the wrong type"),
        (LEAST + CHIP + "memory_mib = -1\n", "memory_mib is -1; it cannot be negative"),
        (LEAST + CHIP + "bandwidth_gb_s = 0\n", "leave it out where it is not known"),
        (LEAST + CHIP + "tflops = { bf16 = 3 }\n", "bf16 is not known here"),
        (LEAST + CHIP + 'rings = "0-3,4"\n', "rings is wrong: .*write them like"),
        (LEAST + CHIP + "sizes = [0]\n", "must be a list of positive whole numbers"),
        (LEAST + CHIP + 'aliases = [""]\n', "aliases is .*list of texts"),
        (LEAST + '[[chips]]\nname = "x"\nkind = "tpu"\n', "'tpu' is not a valid ChipKind"),
        (LEAST + CHIP + 'confidence = "sure"\n', "'sure' is not a valid ProfileConfidence"),
        (LEAST + '[exporter]\nname = "e"\n[exporter.series]\npower = 3\n', "must be a table"),
        (LEAST + '[exporter]\nname = "e"\n[exporter.series.power]\n', "names is required"),
        (LEAST + "run_on_hardware = 1\n", "run_on_hardware is 1, which is of the wrong type"),
        (LEAST + 'setup_scripts = ["set_env.sh"]\n', "setup_scripts has 'set_env.sh'; .*absolute"),
        (LEAST + 'setup_scripts = ["/a:/b"]\n', "setup_scripts has '/a:/b'; .*without ':'"),
        (LEAST + "[images]\nvllm = 3\n", "images is .*table of texts"),
    ],
)
def test_what_is_not_understood_is_refused_by_name_and_place(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(InvalidChipProfile, match=said):
        read_vendor(folder_of(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidChipProfile, match=r"profile\.toml"):
        read_vendor(tmp_path)


def test_a_level_that_is_none_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, LEAST, faults='[levels]\nPANIC = "1"\n')
    with pytest.raises(InvalidChipProfile, match="PANIC is no level; known are NOTE, "):
        read_vendor(folder)


def test_runs_of_codes_are_written_out_and_the_graver_level_holds(tmp_path: Path) -> None:
    faults = '[levels]\nISOLATE = "0A..0C 7"\nNOTE = "0B [x,y]"\n'
    levels = read_vendor(folder_of(tmp_path, LEAST, faults=faults)).profile.faults.levels

    assert {code: level.name for code, level in levels.items()} == {
        "0A": "ISOLATE",
        "0B": "ISOLATE",
        "0C": "ISOLATE",
        "7": "ISOLATE",
        "[x,y]": "NOTE",
    }


def test_what_pods_need_is_filled_in_for_their_chip(tmp_path: Path) -> None:
    text = (
        LEAST
        + '[pods]\ndevice_annotation = "{resource}"\ndevice_name = "{device}-{index}"\n'
        + 'host_paths = ["/opt/acme"]\nlabels = { "acme.com/family" = "{family}", "acme.com/job" = "{name}" }\n'
        + '[pods.families]\nacme-one = "first"\n'
        + '[pods.config_map]\nname = "ranks-{name}"\nat = "/ranks"\ndata = { "table.json" = "{}" }\n'
        + CHIP
        + 'resource = "acme.com/One"\n'
        + '[[chips]]\nname = "acme-two"\nkind = "npu"\n'
    )
    vendor = read_vendor(folder_of(tmp_path, text))
    first, second = (vendor.profile.pods.of(chip) for chip in vendor.chips)

    assert first.labels == {"acme.com/family": "first", "acme.com/job": "{name}"}
    assert (first.device_annotation, first.device_name) == ("acme.com/One", "One-{index}")
    assert (first.config_map, first.config_map_at) == ("ranks-{name}", "/ranks")
    # Nobody says of which family it is, or by which resource it is had.
    assert second.labels == {"acme.com/job": "{name}"}
    assert second.device_annotation == ""


def test_the_plug_in_of_ascend_writes_devices_under_the_name_of_their_resource() -> None:
    extras = (
        adapter_registry.chip_plugins()["ascend"]
        .profile()
        .pods.of_resource("huawei.com/Ascend310P")
    )
    assert (extras.device_annotation, extras.device_name) == (
        "huawei.com/Ascend310P",
        "Ascend310P-{index}",
    )
