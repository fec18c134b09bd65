"""Adapters, found by entry point.

A package adds an adapter by declaring an entry point in one of the groups below; nothing inside the
core changes. Apps never import ``controlplane.adapters``: they ask here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, cast

from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.reasons import NONE, ReasonedError
from controlplane.domain.common.topology import Geometry, InvalidCardGroups
from controlplane.domain.outbound.egress import EgressPolicy
from controlplane.ports.adapter_options import AdapterOptions, InvalidOption, adapter_options
from controlplane.ports.artifacts import ArtifactStore
from controlplane.ports.chips import ChipPlugin, chip_geometry_on_node
from controlplane.ports.clusters import (
    ClusterAdapter,
    InspectableCluster,
    InvalidClusterOption,
    WatchableCluster,
)
from controlplane.ports.engines import Engine, EngineProfile
from controlplane.ports.model_hubs import ModelHub
from controlplane.ports.outbound_http import OutboundHttpClient
from controlplane.ports.telemetry import TelemetryError, TelemetrySource

#: The name of the adapters for tests; documents for users do not describe them.
TEST_ADAPTER = "fake"


class AdapterNotFound(ReasonedError, LookupError):
    """No installed package provides an adapter of that name."""


@cache
def _load_plugin(group: str, name: str) -> Any:
    found = entry_points(group=group, name=name)
    if not found:
        known = ", ".join(sorted(entry.name for entry in entry_points(group=group))) or NONE
        raise AdapterNotFound(
            "adapter.name.not_installed",
            "no {group} adapter is called {name}; installed: {adapters}",
            group=group,
            name=repr(name),
            adapters=known,
        )
    return next(iter(found)).load()


def create_cluster_adapter(kind: str, options: Mapping[str, Any]) -> ClusterAdapter:
    """A new adapter of that kind. Callers keep it only as long as the options stay the same.

    :raises AdapterNotFound: if no package provides it.
    :raises ClusterError: if an option is unknown to it or cannot be used.
    """
    adapter = _load_plugin("ninefold.clusters", kind)
    try:
        adapter_options(adapter).check(options)
    except InvalidOption as error:
        raise InvalidClusterOption(str(error), option=error.option) from error
    return cast(ClusterAdapter, adapter(**options))


@cache
def cluster_options(kind: str) -> AdapterOptions:
    """What a cluster of that kind accepts as options.

    :raises AdapterNotFound: if no package provides it.
    """
    return adapter_options(_load_plugin("ninefold.clusters", kind))


@cache
def cluster_is_watchable(kind: str) -> bool:
    """Whether clusters of that kind can be watched. False if no package provides the kind."""
    return _cluster_kind_implements(kind, WatchableCluster)


def cluster_is_inspectable(kind: str) -> bool:
    """Whether clusters of that kind can be inspected. False if no package provides the kind."""
    return _cluster_kind_implements(kind, InspectableCluster)


@cache
def _cluster_kind_implements(kind: str, protocol: type) -> bool:
    try:
        provided = _load_plugin("ninefold.clusters", kind)
    except AdapterNotFound:
        return False
    return isinstance(provided, type) and issubclass(provided, protocol)


def cluster_kinds() -> tuple[str, ...]:
    return tuple(sorted(entry.name for entry in entry_points(group="ninefold.clusters")))


def artifact_store(kind: str, options: Mapping[str, Any]) -> ArtifactStore:
    return cast(ArtifactStore, _load_plugin("ninefold.artifacts", kind)(**options))


@lru_cache(maxsize=8)
def _cached_outbound(
    kind: str, policy: EgressPolicy, proxy: str, seconds: float
) -> OutboundHttpClient:
    adapter = _load_plugin("ninefold.outbound", kind)
    return cast(OutboundHttpClient, adapter(policy=policy, proxy=proxy, seconds=seconds))


def outbound_http_client(
    policy: EgressPolicy, proxy: str, *, seconds: float = 10.0
) -> OutboundHttpClient:
    """For calls to user-configured addresses, under that policy and by that proxy, if any.

    A whole call takes at most ``seconds``.
    """
    return _cached_outbound("http", policy, proxy, seconds)


def create_telemetry_adapter(
    kind: str, options: Mapping[str, Any], *, outbound: OutboundHttpClient, token: str = ""
) -> TelemetrySource:
    """A new adapter of that kind, which calls by ``outbound`` alone and shows ``token`` if there is one.

    :raises AdapterNotFound: if no package provides it.
    :raises TelemetryError: if an option is unknown to it or cannot be used.
    """
    adapter = _load_plugin("ninefold.telemetry", kind)
    try:
        adapter_options(adapter).check(options)
    except InvalidOption as error:
        raise TelemetryError(str(error), option=error.option) from error
    return cast(TelemetrySource, adapter(**{**options, "outbound": outbound, "token": token}))


@cache
def telemetry_options(kind: str) -> AdapterOptions:
    """What a source of that kind accepts as options.

    :raises AdapterNotFound: if no package provides it.
    """
    return adapter_options(_load_plugin("ninefold.telemetry", kind))


def telemetry_kinds() -> tuple[str, ...]:
    return tuple(sorted(entry.name for entry in entry_points(group="ninefold.telemetry")))


@cache
def telemetry_vendors() -> tuple[str, ...]:
    """Vendors whose exporters' series names are known."""
    return tuple(
        name
        for name, plugin in chip_plugins().items()
        if (exporter := plugin.profile().exporter) is not None and exporter.series
    )


@cache
def hub_by_name(name: str) -> ModelHub:
    """:raises AdapterNotFound: if no package provides it."""
    return cast(ModelHub, _load_plugin("ninefold.hubs", name)())


def hub_names() -> tuple[str, ...]:
    return tuple(sorted(entry.name for entry in entry_points(group="ninefold.hubs")))


@cache
def engine_by_name(name: str) -> Engine:
    """:raises AdapterNotFound: if no package provides it."""
    return cast(Engine, _load_plugin("ninefold.engines", name)())


@cache
def engine_names() -> tuple[str, ...]:
    return tuple(sorted(entry.name for entry in entry_points(group="ninefold.engines")))


@cache
def chip_plugins() -> Mapping[str, ChipPlugin]:
    plugins: dict[str, ChipPlugin] = {}
    for entry in sorted(entry_points(group="ninefold.chips"), key=lambda entry: entry.name):
        plugin = cast(ChipPlugin, entry.load()())
        plugins[plugin.vendor] = plugin
    return plugins


@cache
def all_chips() -> Mapping[str, Chip]:
    """Every chip of every plug-in, by name: processors, which each machine has, before what is built in."""
    every = [chip for plugin in chip_plugins().values() for chip in plugin.chips()]
    kinds = tuple(ChipKind)
    ordered = sorted(every, key=lambda chip: kinds.index(chip.kind))
    return MappingProxyType({chip.name: chip for chip in ordered})


def plugin_of_chip(chip: Chip) -> ChipPlugin:
    return chip_plugins()[chip.vendor]


def image_template(profile: EngineProfile, *, engine: str, chip: Chip) -> str:
    """Image of the engine on the chip, with ``{version}`` left in place; empty if none is known.

    An image that the chip's plug-in names for the engine takes precedence, so that an operator can replace the
    engine's own choice; then the engine's image for the chip, then its image for the vendor.
    """
    plugin = chip_plugins().get(chip.vendor)
    if plugin and (image := plugin.profile().images.get(engine)):
        return image
    return profile.images.get(chip.name) or profile.images.get(chip.vendor) or ""


def chip_by_name(name: str) -> Chip | None:
    """The chip of that name or alias, ignoring case; None if no plug-in knows it."""
    wanted = name.strip().lower()
    known = all_chips()
    return known.get(wanted) or next(
        (chip for chip in known.values() if wanted in chip.aliases), None
    )


@cache
def _visible_devices_variables() -> frozenset[str]:
    """Variables that decide which cards a container or a process sees, as the chips' profiles name them."""
    names: set[str] = set()
    for plugin in chip_plugins().values():
        names.add(plugin.profile().runtime_variable)
        for chip in plugin.chips():
            names.add(chip.visible_devices_variable)
    return frozenset(names - {""})


@cache
def _visible_devices_patterns() -> tuple[re.Pattern[str], ...]:
    patterns = (
        pattern
        for plugin in chip_plugins().values()
        for pattern in plugin.profile().reserved_variables
    )
    return tuple(map(re.compile, patterns))


def is_visible_devices_variable(variable: str) -> bool:
    """Whether an environment variable of that name decides which cards a job sees, whatever the vendor."""
    return variable in _visible_devices_variables() or any(
        pattern.fullmatch(variable) for pattern in _visible_devices_patterns()
    )


def variables_that_hide_devices(used: Iterable[str]) -> dict[str, str]:
    """Environment variables that hide the cards of every vendor except the cards of the chips in use.

    Container runtimes get the value that means no devices; libraries get an empty list.

    :param used: names of the chips of a process; unknown names count as chips of no vendor.
    """
    known = all_chips()
    own = [known[name] for name in set(used) & known.keys()]
    vendors = {chip.vendor for chip in own}
    hidden: dict[str, str] = {}
    for plugin in chip_plugins().values():
        if plugin.vendor in vendors:
            continue
        profile = plugin.profile()
        hidden |= {chip.visible_devices_variable: "" for chip in plugin.chips()}
        hidden[profile.runtime_variable] = profile.no_devices
    # Vendors share names: those of the cards in use stay as their own plug-in and device plug-in set them.
    preserved = {""} | {chip.visible_devices_variable for chip in own}
    preserved |= {plugin_of_chip(chip).profile().runtime_variable for chip in own}
    return {name: value for name, value in sorted(hidden.items()) if name not in preserved}


def geometries_on_node(labels: Mapping[str, str], names: Iterable[str]) -> Mapping[str, Geometry]:
    """How the cards of each of those chips hang together on a node with those labels.

    A chip is absent if any of its cards are as good as any others, or if no plug-in knows it. Where an
    operator's word cannot be read, what is usual for the chip holds.
    """
    known = all_chips()
    found = {}
    for name in names:
        if chip := known.get(name):
            try:
                geometry = chip_geometry_on_node(plugin_of_chip(chip), chip, labels)
            except InvalidCardGroups:
                geometry = chip.geometry
            if not geometry.plain:
                found[name] = geometry
    return found
