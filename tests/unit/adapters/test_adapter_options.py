"""Options of adapters as their constructors declare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest

from controlplane.domain.outbound.egress import EgressPolicy
from controlplane.ports import adapter_registry
from controlplane.ports.adapter_options import InvalidOption, adapter_options
from controlplane.ports.clusters import InvalidClusterOption
from controlplane.ports.telemetry import TelemetryError


@dataclass(frozen=True, kw_only=True)
class Profile:
    place: str
    size: int = 3
    level: Literal[1, 2] = 1


class Base:
    options_declaration: ClassVar = Profile

    def __init__(self, *, token: str = "", depth: int = 1, **options: Any) -> None:
        self.options = options


class Derived(Base):
    def __init__(self, *, queue: str, **options: Any) -> None:
        super().__init__(**options)


class Open:
    def __init__(self, *, speed: float = 1.0, **options: Any) -> None:
        self.options = options


def test_options_are_those_of_the_constructors_and_of_the_declared_dataclass() -> None:
    found = adapter_options(Derived)
    assert set(found.types) == {"queue", "depth", "place", "size", "level"}
    assert not found.open
    assert adapter_options(Open).open
    found.check({"queue": "q", "place": "here"})
    schema = found.model("DerivedOptions").model_json_schema()
    assert schema["required"] == ["queue", "place"]
    assert schema["additionalProperties"] is False


def test_an_invalid_option_is_named() -> None:
    for options, option, message in (
        ({"queue": "q"}, "place", "place is required"),
        ({"queue": "q", "place": "x", "moon": 1}, "moon", "depth, level, place, queue, size"),
        ({"queue": 7, "place": "x"}, "queue", "queue must be a string, got 7"),
        ({"queue": "q", "place": "x", "size": "large"}, "size", "size must be an integer"),
        ({"queue": "q", "place": "x", "level": 3}, "level", "level must be one of 1, 2, got 3"),
        (
            {"queue": "q", "place": "x", "depth": True},
            "depth",
            "depth must be an integer, got True",
        ),
    ):
        with pytest.raises(InvalidOption, match=message) as refusal:
            adapter_options(Derived).check(options)
        assert refusal.value.option == option
    with pytest.raises(InvalidOption, match="speed must be a number, got 'fast'"):
        adapter_options(Open).check({"speed": "fast", "anything": {}})


def test_installed_clusters_name_the_path_of_an_invalid_option() -> None:
    for kind, options, option in (
        ("kubernetes", {"moon": 1}, "moon"),
        ("kubernetes", {"mounts": [{"host_path": "/a", "at": "b"}]}, "mounts[0].at"),
        ("kubernetes", {"pull_policy": "Sometimes"}, "pull_policy"),
        ("volcano", {"queue": 1}, "queue"),
        ("volcano", {"egress": [{"cidr": "10.0.0.0/8", "ports": [0]}]}, "egress[0].ports[0]"),
    ):
        given = {"installation": "i", "kubeconfig": "", **options}
        with pytest.raises(InvalidClusterOption) as refusal:
            adapter_registry.create_cluster_adapter(kind, given)
        assert refusal.value.option == option, str(refusal.value)


def test_installed_sources_name_the_path_of_an_invalid_option() -> None:
    outbound = adapter_registry.outbound_http_client(EgressPolicy(), "")
    for kind, options, option in (
        ("exporter", {"targets": [{"url": "https://1.1.1.1/m"}]}, "vendor"),
        ("exporter", {"vendor": "nvidia", "targets": [{"url": 7}]}, "targets[0].url"),
        ("exporter", {"vendor": "moon", "targets": [{"url": "https://1.1.1.1/m"}]}, "vendor"),
        ("prometheus", {"url": "https://1.1.1.1", "vendor": "nvidia", "window": "1m"}, "window"),
        ("prometheus", {"url": "https://1.1.1.1", "vendor": "nvidia", "window": 0}, "window"),
        ("prometheus", {"url": "https://1.1.1.1", "vendor": "nvidia", "every": 1}, "every"),
    ):
        with pytest.raises(TelemetryError) as refusal:
            adapter_registry.create_telemetry_adapter(kind, options, outbound=outbound)
        assert refusal.value.option == option, str(refusal.value)
