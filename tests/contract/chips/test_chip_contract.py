"""What every chip plug-in promises, whoever wrote it: one suite over all that are installed."""

from __future__ import annotations

import re
from collections import Counter
from importlib.metadata import entry_points

from controlplane.domain.common.accelerators import (
    Chip,
    ChipKind,
    Dtype,
    ProfileConfidence,
    check_cards_per_node,
)
from controlplane.domain.common.resources import GIB
from controlplane.domain.common.topology import Geometry, choose_cards
from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.telemetry.metrics import Metric
from controlplane.ports import adapter_registry
from controlplane.ports.chips import ChipPlugin, discover_cards
from controlplane.ports.expositions import FAULT
from tests.cases import for_each_case

METRICS = {*Metric, FAULT}
UNVERIFIED = {
    "memory",
    "memory_bandwidth",
    "link_bandwidth",
    "peak_rates",
    "visible_devices_variable",
}
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")

each_plugin = for_each_case("plugin", adapter_registry.chip_plugins().values())
each_chip = for_each_case("chip", adapter_registry.all_chips().values())


@each_plugin
def test_it_is_a_plug_in_under_its_vendors_name(plugin: ChipPlugin) -> None:
    assert isinstance(plugin, ChipPlugin)
    assert plugin.profile().vendor == plugin.vendor
    assert plugin.profile().title
    assert plugin.vendor in entry_points(group="ninefold.chips").names
    assert {chip.vendor for chip in plugin.chips()} == {plugin.vendor}


@each_plugin
def test_asked_twice_it_says_the_same(plugin: ChipPlugin) -> None:
    assert plugin.profile() == plugin.profile()
    assert plugin.chips() == plugin.chips()


@each_plugin
def test_its_resources_and_layouts_can_be_read(plugin: ChipPlugin) -> None:
    profile = plugin.profile()
    for pattern in profile.resource_patterns:
        re.compile(pattern)
    assert bool(profile.layouts) == bool(profile.layout_label)
    for geometry in profile.layouts.values():
        assert_sound(geometry)


@each_plugin
def test_its_metric_map_names_figures_of_the_product(plugin: ChipPlugin) -> None:
    exporter = plugin.profile().exporter
    if exporter is None:
        return
    assert set(exporter.series) <= METRICS
    assert exporter.name
    assert exporter.fault_base in (10, 16)
    for series in exporter.series.values():
        assert exporter.card_label or exporter.index_label
        assert series.scale > 0
        for name in series.names:
            assert re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", name)
    if not exporter.verified:
        assert exporter.series == {}


@each_plugin
def test_its_fault_map_has_sources_and_levels(plugin: ChipPlugin) -> None:
    faults = plugin.profile().faults
    assert all(code == code.strip() and code for code in faults.levels)
    assert set(faults.levels.values()) <= set(FaultLevel)
    assert bool(faults.levels) == bool(faults.sources)


def test_no_name_and_no_alias_means_two_chips() -> None:
    names = Counter(
        name
        for chip in adapter_registry.all_chips().values()
        for name in chip.aliases | {chip.name}
    )
    assert [name for name, count in names.items() if count > 1] == []


@each_chip
def test_it_is_found_by_its_name_and_by_each_alias(chip: Chip) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", chip.name)
    assert len(chip.name) <= 60
    for name in {chip.name, *chip.aliases}:
        assert name == name.lower().strip()
        assert adapter_registry.chip_by_name(name.upper()) == chip


@each_chip
def test_its_figures_are_of_the_right_size_or_unknown(chip: Chip) -> None:
    assert chip.memory == 0 or GIB <= chip.memory <= 1024 * GIB
    assert chip.memory_bandwidth is None or 1e10 <= chip.memory_bandwidth <= 1e14
    assert chip.link_bandwidth is None or 1e9 <= chip.link_bandwidth <= 1e13
    for dtype, rate in chip.peak_rates.items():
        assert isinstance(dtype, Dtype)
        assert 1e12 <= rate <= 1e17
    order = (Dtype.FLOAT32, Dtype.TFLOAT32, Dtype.FLOAT16, Dtype.FLOAT8)
    rates = [chip.peak_rates[dtype] for dtype in order if dtype in chip.peak_rates]
    assert rates == sorted(rates), "a narrower format is never slower"


@each_chip
def test_what_is_unverified_is_said(chip: Chip) -> None:
    assert chip.unverified <= UNVERIFIED
    specifications = (chip.memory, chip.memory_bandwidth, chip.link_bandwidth, chip.peak_rates)
    if chip.confidence is ProfileConfidence.UNVERIFIED:
        assert not any(specifications), "an unverified chip has a name and no figures"
    if chip.confidence is ProfileConfidence.VERIFIED:
        assert not chip.unverified
    if any(specifications):
        assert chip.sources


@each_chip
def test_every_legal_request_fits_on_a_free_node(chip: Chip) -> None:
    assert_sound(chip.geometry, cards=chip.cards_per_node)
    for size in chip.legal_request_sizes:
        assert check_cards_per_node(chip, size) is None
    if chip.legal_request_sizes:
        wrong = check_cards_per_node(chip, max(chip.legal_request_sizes) + 1)
        assert wrong is not None
        assert chip.name in wrong.message


@each_chip
def test_processes_are_told_their_cards_by_variables(chip: Chip) -> None:
    plugin = adapter_registry.plugin_of_chip(chip)
    two, one = (plugin.environment(chip, cards=cards) for cards in ((2, 3), (0,)))
    for name, value in two.items():
        assert _VARIABLE.fullmatch(name)
        assert isinstance(value, str)
    if chip.visible_devices_variable:
        assert two[chip.visible_devices_variable] == "2,3"
        assert one[chip.visible_devices_variable] == "0"
    if chip.kind is not ChipKind.CPU:
        assert {name for name in two if two[name] != one.get(name)} <= {
            chip.visible_devices_variable
        }


@each_chip
def test_a_node_that_bears_it_is_recognised(chip: Chip) -> None:
    plugin = adapter_registry.plugin_of_chip(chip)
    labels = dict(chip.node_labels)
    if plugin.profile().model_labels:
        # Labels name whole cards, also where they are divided.
        labels[plugin.profile().model_labels[0]] = chip.slice_of or chip.name
    alone = sum(other.resource == chip.resource for other in plugin.chips()) == 1
    found = discover_cards(
        adapter_registry.chip_plugins().values(),
        labels=labels,
        annotations={},
        allocatable={chip.resource: "8"} if chip.resource else {},
    )
    assert [cards.count for cards in found] == ([8] if chip.resource else [])
    for cards in found:
        assert cards.vendor == chip.vendor
        assert cards.chip == (chip if labels or alone else None)


def assert_sound(geometry: Geometry, *, cards: int = 0) -> None:
    """Its rules agree with each other and can be kept on a free node."""
    linked = [card for ring in geometry.rings for card in ring]
    count = cards or max([*geometry.sizes, len(linked)], default=0)
    assert len(set(linked)) == len(linked)
    assert set(linked) <= set(range(count))
    assert list(geometry.sizes) == sorted(set(geometry.sizes))
    for size in geometry.sizes:
        assert choose_cards(range(count), size, geometry) is not None
