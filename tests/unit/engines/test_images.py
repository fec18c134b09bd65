"""Which version of an engine runs, and in which image."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.adapters.engines import container_engine
from controlplane.adapters.engines.container_engine import ContainerEngine
from controlplane.ports.adapter_registry import all_chips, plugin_of_chip
from controlplane.ports.engines import EngineProfile

PROFILE = EngineProfile(
    title="Trainer",
    versions=">=1.2,<2",
    default_version="1.4.0",
    images={
        "nvidia": "trainer:{version}-cuda",
        "nvidia-t4": "trainer:{version}-old-cuda",
        "ascend-910b3": "ascend/trainer:v1.3.1-A2",
    },
)
H800, T4, NPU, CPU = (
    all_chips()[name] for name in ("nvidia-h800", "nvidia-t4", "ascend-910b3", "cpu")
)


def engine(name: str = "trainer", profile: EngineProfile = PROFILE) -> ContainerEngine:
    found = ContainerEngine()
    found.name, found.engine_profile = name, profile
    return found


def wrong(asked: str, *, profile: EngineProfile = PROFILE, chip: str = "nvidia-h800") -> str:
    found = engine("trainer", profile).check_version(
        {"engine_version": asked}, chip=all_chips()[chip]
    )
    return found[0].message if found else ""


def test_the_chips_own_image_goes_before_its_vendors() -> None:
    assert engine().image(H800, {}) == "trainer:1.4.0-cuda"
    assert engine().image(T4, {}) == "trainer:1.4.0-old-cuda"


def test_a_version_that_is_asked_for_names_the_image() -> None:
    spec = {"engine_version": "1.5"}
    assert engine().image(H800, spec) == "trainer:1.5-cuda"


def test_a_chip_without_an_image_is_told_by_its_name() -> None:
    assert engine().image(CPU, {}) == ""
    reason = engine().missing_image_reason(CPU)
    assert reason == "no image of Trainer is known for CPU"
    assert engine().missing_image_reason(NPU) == ""


def test_a_vendor_that_knows_an_image_adds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = plugin_of_chip(CPU)
    profile = replace(plugin.profile(), images={"trainer": "cpu/trainer:1.4.0"})
    monkeypatch.setattr(type(plugin), "profile", lambda _self: profile)
    assert engine().image(CPU, {}) == "cpu/trainer:1.4.0"
    assert engine("other").image(CPU, {}) == ""


def test_an_image_of_the_chip_plugin_replaces_the_engines_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = plugin_of_chip(NPU)
    profile = replace(plugin.profile(), images={"trainer": "example/trainer:1.4.0-own"})
    monkeypatch.setattr(type(plugin), "profile", lambda _self: profile)
    assert engine().image(NPU, {}) == "example/trainer:1.4.0-own"


def test_a_chip_that_no_plugin_brought_has_no_image() -> None:
    stranger = replace(CPU, name="stranger", vendor="nobody")
    assert engine().image(stranger, {}) == ""


@pytest.mark.parametrize("asked", ["1.2", "1.4.0", "1.9.9rc1"])
def test_a_version_within_the_range_is_right(asked: str) -> None:
    assert wrong(asked) == ""


@pytest.mark.parametrize(
    "asked", ["1.1.9", "2.0", "99", "latest", "", " 1.4.0", "1.4.0 --privileged"]
)
def test_any_other_version_is_refused_with_what_would_be_right(asked: str) -> None:
    assert wrong(asked) == (
        f"engine_version must be a version of Trainer >=1.2,<2, for example 1.4.0, got {asked!r}"
    )


def test_an_image_with_one_version_runs_no_other() -> None:
    assert wrong("1.3.1", chip="ascend-910b3") == ""
    assert wrong("1.3", chip="ascend-910b3") == (
        "engine_version cannot be '1.3' on Ascend 910B3: its image is "
        "ascend/trainer:v1.3.1-A2; leave the field empty"
    )


def test_an_engine_of_this_product_has_no_versions() -> None:
    own = EngineProfile(title="Own")
    assert wrong("1.0", profile=own) == (
        "engine_version cannot be set, got '1.0': Own is part of Ninefold"
    )


def test_each_generation_of_ascend_gets_its_build_and_nothing_without_one() -> None:
    found = container_engine.ascend_images(a2="two", a3="three")
    assert set(found) <= set(all_chips())
    assert (found["ascend-910b3"], found["ascend-910c"]) == ("two", "three")
    assert "ascend-310p" not in found
    assert (
        container_engine.ascend_images(a2="two", a3="three", inference="small")["ascend-310p-duo"]
        == "small"
    )
