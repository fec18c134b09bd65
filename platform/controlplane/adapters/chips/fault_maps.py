"""``faults.toml``: a vendor's fault codes, what they mean and what has to be done (``docs/adding-a-chip.md``)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from controlplane.adapters.chips.toml_sections import TomlSection
from controlplane.domain.health.faults import (
    FAMILY,
    FaultLevel,
    FaultMap,
    Fitness,
    Lasting,
    Repeats,
    Words,
)

#: Between the first and the last code of a run of hexadecimal ones.
_RUN = ".."


def fault_map_of(section: TomlSection) -> FaultMap:
    """:raises InvalidChipProfile: if the file has an unknown setting or refers to unknown codes."""
    levels: dict[str, FaultLevel] = {}
    for name, codes in section.words("levels").items():
        if name not in FaultLevel.__members__:
            known = ", ".join(FaultLevel.__members__)
            section.refuse(f"levels.{name}", f"is no level; known are {known}")
        for code in _codes(codes):
            # Where a vendor lists a code twice, the graver level holds.
            levels[code] = max(levels.get(code, FaultLevel.NOTE), FaultLevel[name])
    faults = FaultMap(
        levels=levels,
        words=dict(_words(section)),
        states=dict(_states(section)),
        repeats=dict(_repeats(section)),
        lasting=dict(_lasting(section)),
        sources=section.texts("sources"),
    )
    _refuse_unknown(section, faults)
    section.done()
    return faults


def _words(section: TomlSection) -> Iterator[tuple[str, Words]]:
    for each in section.listed("words"):
        codes = tuple(_codes(each.required("codes")))
        families = all(code.endswith(FAMILY) for code in codes)
        remedy = each.text("remedy") if families else each.required("remedy")
        words = Words(cause=each.required("cause"), remedy=remedy)
        yield from ((code, words) for code in codes)
        each.done()


def _states(section: TomlSection) -> Iterator[tuple[str, Fitness]]:
    for name, codes in section.words("states").items():
        if name not in Fitness.__members__:
            known = ", ".join(Fitness.__members__)
            section.refuse(f"states.{name}", f"is no state of a card; known are {known}")
        yield from ((code, Fitness[name]) for code in _codes(codes))


def _repeats(section: TomlSection) -> Iterator[tuple[str, Repeats]]:
    for each in section.listed("repeats"):
        repeats = Repeats(
            times=each.whole("times"), within=timedelta(hours=each.number("hours") or 0)
        )
        if repeats.times and not repeats.within:
            each.refuse("hours", "is required: within how many hours it came so often")
        yield from ((code, repeats) for code in _codes(each.required("codes")))
        each.done()


def _lasting(section: TomlSection) -> Iterator[tuple[str, Lasting]]:
    for each in section.listed("lasting"):
        name = each.required("level")
        if name not in FaultLevel.__members__:
            each.refuse("level", f"is {name!r}, which is no level")
        seconds = each.number("seconds") or each.refuse("seconds", "is required")
        lasting = Lasting(after=timedelta(seconds=seconds), level=FaultLevel[name])
        yield from ((code, lasting) for code in _codes(each.required("codes")))
        each.done()


def _refuse_unknown(section: TomlSection, faults: FaultMap) -> None:
    """A misspelt code would otherwise be explained, or damped, without effect."""
    for kind in ("states", "repeats", "lasting"):
        for code in getattr(faults, kind):
            if code not in faults.levels:
                section.refuse(kind, f"speaks of {code}, which has no level")
    for code in faults.words:
        beginning = code.removesuffix(FAMILY)
        if not any(each.startswith(beginning) for each in faults.levels):
            section.refuse("words", f"speaks of {code}, which has no level")


def _codes(codes: str) -> Iterator[str]:
    """Codes parted by spaces; ``8F180200..8F180219`` is a run of hexadecimal ones of equal length."""
    for word in codes.split():
        first, run, last = word.partition(_RUN)
        if not run:
            yield word
            continue
        for number in range(int(first, 16), int(last, 16) + 1):
            yield f"{number:0{len(first)}X}"
