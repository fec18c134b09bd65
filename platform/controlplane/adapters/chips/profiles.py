"""Vendors as data: reads ``profile.toml`` and ``faults.toml`` of each vendor's folder into a plug-in.

``docs/adding-a-chip.md`` explains the files. Numbers stand in them as vendors print them (MiB, GB/s, TFLOPS) and
come out in bytes and operations a second. What a file does not say stays None, 0 or empty. What is not understood
is an error: a number under a misspelt name would otherwise be missing silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path

from controlplane.adapters.chips.toml_sections import (
    InvalidChipProfile,
    TomlSection,
    read_toml_file,
)
from controlplane.domain.common.accelerators import Chip, ChipKind, Dtype, ProfileConfidence
from controlplane.domain.common.resources import MIB, Bytes
from controlplane.domain.common.topology import Geometry
from controlplane.domain.health.faults import (
    FAMILY,
    CardFitness,
    DurationEscalation,
    FaultLevel,
    FaultMap,
    FaultTexts,
    RepeatRule,
)
from controlplane.ports.chips import (
    CollectiveSettings,
    Exporter,
    ExporterSeries,
    VendorPodSettings,
    VendorProfile,
)

GIGA, TERA = 1e9, 1e12
PROFILE, FAULTS = "profile.toml", "faults.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorData:
    """The parsed file."""

    profile: VendorProfile
    chips: tuple[Chip, ...]
    #: Constant variables of every process on its cards.
    environment: Mapping[str, str]


def read_vendor(folder: Path) -> VendorData:
    """The vendor that the folder describes.

    :raises InvalidChipProfile: if a file is missing, is no TOML or has an unknown setting.
    """
    top = read_toml_file(folder / PROFILE)
    vendor = top.required("vendor")
    labels = top.section("labels") or TomlSection({}, at=top.at)
    pods, exporter = top.section("pods"), top.section("exporter")
    collectives, faults = top.section("collectives"), folder / FAULTS
    defaults = top.take("usual", dict, {})
    chips = tuple(
        _parse_chip(
            TomlSection({**defaults, **values}, at=f"{top.at} [[chips]] {place}"), vendor=vendor
        )
        for place, values in enumerate(top.take("chips", list, []), start=1)
    )
    slices = [
        chip
        for section in top.listed("slices")
        for chip in _chips_of_slice_profiles(section, chips)
    ]
    environment = top.text_map("environment")
    profile = top.build(
        VendorProfile,
        vendor=vendor,
        title=top.required("title"),
        collectives=collectives.build(CollectiveSettings) if collectives else None,
        setup_scripts=_setup_scripts(top),
        model_labels=labels.texts("model"),
        memory_label=labels.text("memory"),
        count_label=labels.text("count"),
        layout_label=labels.text("layout"),
        layouts={name: _parse_geometry(section) for name, section in top.sections("layouts")},
        pods=_parse_pod_extras(pods) if pods else VendorPodSettings(),
        exporter=_parse_exporter(exporter) if exporter else None,
        faults=parse_fault_map(read_toml_file(faults)) if faults.is_file() else FaultMap(),
    )
    labels.done()
    return VendorData(profile=profile, chips=(*chips, *slices), environment=environment)


class VendorFileChipPlugin:
    """Implements ``controlplane.ports.chips.ChipPlugin`` by the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def beside(cls, module_file: str) -> VendorFileChipPlugin:
        """The plug-in of the folder that a module lies in; pass ``__file__``."""
        return cls(Path(module_file).resolve().parent)

    @cached_property
    def _read_vendor_data(self) -> VendorData:
        return read_vendor(self._folder)

    @property
    def vendor(self) -> str:
        return self._read_vendor_data.profile.vendor

    def profile(self) -> VendorProfile:
        return self._read_vendor_data.profile

    def chips(self) -> tuple[Chip, ...]:
        return self._read_vendor_data.chips

    def environment(self, chip: Chip, *, cards: tuple[int, ...]) -> Mapping[str, str]:
        """The constants of the file, and the variable that names the cards; empty, it hides them all."""
        variables = dict(self._read_vendor_data.environment)
        if chip.visible_devices_variable:
            variables[chip.visible_devices_variable] = ",".join(map(str, cards))
        return variables


def _setup_scripts(section: TomlSection) -> tuple[str, ...]:
    scripts = section.texts("setup_scripts")
    for script in scripts:
        # They are handed over as one variable, divided by colons.
        if not script.startswith("/") or ":" in script:
            section.refuse(
                "setup_scripts", f"has {script!r}; it must be an absolute path without ':'"
            )
    return scripts


def _parse_pod_extras(section: TomlSection) -> VendorPodSettings:
    config_map = section.section("config_map") or TomlSection({}, at=section.at)
    extras = section.build(
        VendorPodSettings,
        config_map=config_map.text("name"),
        config_map_data=config_map.text_map("data"),
        config_map_labels=config_map.text_map("labels"),
        config_map_at=config_map.text("at"),
    )
    config_map.done()
    return extras


def _parse_exporter(section: TomlSection) -> Exporter:
    series = {name: each.build(ExporterSeries) for name, each in section.sections("series")}
    return section.build(Exporter, port=section.whole("port") or None, series=series)


def _parse_geometry(section: TomlSection) -> Geometry:
    # Groups of NUMA nodes and adapters are of single nodes.
    aligned_to = section.whole("aligned_to", 1) or 1
    return section.build(Geometry, aligned_to=aligned_to, numa=(), nics=())


def _parse_chip(section: TomlSection, *, vendor: str) -> Chip:
    name = section.required("name")
    section.at = f"{section.at} ({name})"
    bandwidth, link = section.number("bandwidth_gb_s"), section.number("link_gb_s")
    rates = section.section("tflops") or TomlSection({}, at=section.at)
    try:
        kind = ChipKind(section.required("kind"))
        confidence = ProfileConfidence(section.text("confidence", ProfileConfidence.VERIFIED))
    except ValueError as wrong:
        raise InvalidChipProfile(f"{section.at}: {wrong}") from wrong
    peak_rates = {
        dtype: rate * TERA for dtype in Dtype if (rate := rates.number(dtype.value)) is not None
    }
    rates.done()
    return section.build(
        Chip,
        name=name,
        vendor=vendor,
        kind=kind,
        memory=Bytes(section.whole("memory_mib") * MIB),
        torch_device=section.text("torch_device"),
        legal_request_sizes=section.sizes("sizes"),
        aliases=frozenset(alias.lower() for alias in section.texts("aliases")),
        memory_bandwidth=None if bandwidth is None else bandwidth * GIGA,
        link_bandwidth=None if link is None else link * GIGA,
        peak_rates=peak_rates,
        aligned_to=section.whole("aligned_to", 1) or 1,
        slice_of="",
        slice_profile="",
        confidence=confidence,
        unverified=frozenset(section.texts("unverified")),
    )


def _chips_of_slice_profiles(section: TomlSection, chips: Sequence[Chip]) -> Iterator[Chip]:
    """A slice profile as a chip of its own, for each chip that has it; only its memory size is known."""
    profile, resource = section.required("profile"), section.required("resource")
    memory = Bytes(section.whole("memory_mib") * MIB)
    sizes, sources = section.sizes("sizes"), section.texts("sources")
    known = {chip.name: chip for chip in chips}
    parents = section.texts("of")
    section.done()
    for name in parents:
        if name not in known:
            section.refuse("of", f"has {name!r}, which is no chip of this file")
        yield replace(
            known[name],
            name=f"{name}-{re.sub('[^a-z0-9]+', '-', profile)}",
            title=f"{known[name].label} {profile}",
            memory=memory,
            slice_of=name,
            slice_profile=profile,
            resource=resource,
            legal_request_sizes=sizes,
            aliases=frozenset({f"{name}-{profile}"}),
            memory_bandwidth=None,
            link_bandwidth=None,
            peak_rates={},
            cards_per_node=0,
            rings=(),
            aligned_to=1,
            split_evenly=False,
            confidence=ProfileConfidence.PARTLY,
            unverified=frozenset(),
            sources=sources,
        )


#: Between the first and the last code of a run of hexadecimal ones.
_CODE_RANGE = ".."


def parse_fault_map(section: TomlSection) -> FaultMap:
    """:raises InvalidChipProfile: if the file has an unknown setting or refers to unknown codes."""
    levels: dict[str, FaultLevel] = {}
    for name, codes in section.text_map("levels").items():
        if name not in FaultLevel.__members__:
            known = ", ".join(FaultLevel.__members__)
            section.refuse(f"levels.{name}", f"is no level; known are {known}")
        for code in _expand_fault_codes(codes):
            # Where a vendor lists a code twice, the graver level holds.
            levels[code] = max(levels.get(code, FaultLevel.NOTE), FaultLevel[name])
    faults = FaultMap(
        levels=levels,
        texts=_fault_texts(section),
        states=dict(_parse_card_fitness(section)),
        repeat_rules=dict(_repeat_rules(section)),
        lasting=dict(_duration_rules(section)),
        sources=section.texts("sources"),
    )
    _refuse_unknown_codes(section, faults)
    section.done()
    return faults


def _fault_texts(section: TomlSection) -> dict[str, FaultTexts]:
    texts = {code: FaultTexts(cause=name) for code, name in section.text_map("names").items()}
    for code, described in _fault_descriptions(section):
        if code in texts:
            section.refuse("words", f"describes {code}, which already has a text")
        texts[code] = described
    return texts


def _fault_descriptions(section: TomlSection) -> Iterator[tuple[str, FaultTexts]]:
    for each in section.listed("words"):
        codes = tuple(_expand_fault_codes(each.required("codes")))
        families = all(code.endswith(FAMILY) for code in codes)
        remedy = each.text("remedy") if families else each.required("remedy")
        texts = FaultTexts(cause=each.required("cause"), remedy=remedy)
        yield from ((code, texts) for code in codes)
        each.done()


def _parse_card_fitness(section: TomlSection) -> Iterator[tuple[str, CardFitness]]:
    for name, codes in section.text_map("states").items():
        if name not in CardFitness.__members__:
            known = ", ".join(CardFitness.__members__)
            section.refuse(f"states.{name}", f"is no state of a card; known are {known}")
        yield from ((code, CardFitness[name]) for code in _expand_fault_codes(codes))


def _repeat_rules(section: TomlSection) -> Iterator[tuple[str, RepeatRule]]:
    for each in section.listed("repeats"):
        rule = RepeatRule(
            times=each.whole("times"), within=timedelta(hours=each.number("hours") or 0)
        )
        if rule.times and not rule.within:
            each.refuse("hours", "is required: within how many hours it came so often")
        yield from ((code, rule) for code in _expand_fault_codes(each.required("codes")))
        each.done()


def _duration_rules(section: TomlSection) -> Iterator[tuple[str, DurationEscalation]]:
    for each in section.listed("lasting"):
        name = each.required("level")
        if name not in FaultLevel.__members__:
            each.refuse("level", f"is {name!r}, which is no level")
        seconds = each.number("seconds") or each.refuse("seconds", "is required")
        lasting = DurationEscalation(after=timedelta(seconds=seconds), level=FaultLevel[name])
        yield from ((code, lasting) for code in _expand_fault_codes(each.required("codes")))
        each.done()


def _refuse_unknown_codes(section: TomlSection, faults: FaultMap) -> None:
    """A misspelt code would otherwise be explained, or damped, without effect."""
    tables = {"states": faults.states, "repeats": faults.repeat_rules, "lasting": faults.lasting}
    for kind, codes in tables.items():
        for code in codes:
            if code not in faults.levels:
                section.refuse(kind, f"speaks of {code}, which has no level")
    for code in faults.texts:
        beginning = code.removesuffix(FAMILY)
        if not any(each.startswith(beginning) for each in faults.levels):
            section.refuse("names and words", f"describe {code}, which has no level")


def _expand_fault_codes(codes: str) -> Iterator[str]:
    """Codes parted by spaces; ``8F180200..8F180219`` is a run of hexadecimal ones of equal length."""
    for word in codes.split():
        first, run, last = word.partition(_CODE_RANGE)
        if not run:
            yield word
            continue
        for number in range(int(first, 16), int(last, 16) + 1):
            yield f"{number:0{len(first)}X}"


#: The plug-ins of the vendors that ship with Ninefold.
_FOLDER = Path(__file__).resolve().parent

amd = partial(VendorFileChipPlugin, _FOLDER / "amd")
ascend = partial(VendorFileChipPlugin, _FOLDER / "ascend")
biren = partial(VendorFileChipPlugin, _FOLDER / "biren")
cambricon = partial(VendorFileChipPlugin, _FOLDER / "cambricon")
enflame = partial(VendorFileChipPlugin, _FOLDER / "enflame")
gaudi = partial(VendorFileChipPlugin, _FOLDER / "gaudi")
hygon = partial(VendorFileChipPlugin, _FOLDER / "hygon")
iluvatar = partial(VendorFileChipPlugin, _FOLDER / "iluvatar")
intel = partial(VendorFileChipPlugin, _FOLDER / "intel")
kunlunxin = partial(VendorFileChipPlugin, _FOLDER / "kunlunxin")
metax = partial(VendorFileChipPlugin, _FOLDER / "metax")
mthreads = partial(VendorFileChipPlugin, _FOLDER / "mthreads")
nvidia = partial(VendorFileChipPlugin, _FOLDER / "nvidia")
thead = partial(VendorFileChipPlugin, _FOLDER / "thead")
