"""Narrowing the catalog, and what the counts beside each value promise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.catalog import CatalogEntry, CompatibilityCell, Modality
from controlplane.domain.catalog.entries import (
    VENDOR_FACETS,
    CatalogFacet,
    IndexedEntry,
    SizeClass,
    index_entries,
    search_catalog_with_counts,
    size_class,
)
from tests.unit.domain.catalog.entry_factory import cell, entry

ENGINES = frozenset({"vllm", "mindie"})
BILLION = 10**9


def renders(_: CatalogEntry, claim: CompatibilityCell) -> bool:
    return claim.engine in ENGINES


def keys(entries: tuple[CatalogEntry, ...]) -> list[str]:
    return [one.key for one in entries]


def test_sizes_have_the_bounds_of_their_names() -> None:
    assert size_class(None) is SizeClass.UNKNOWN
    assert size_class(BILLION - 1) is SizeClass.SMALL
    assert size_class(BILLION) is SizeClass.LIGHT
    assert size_class(40 * BILLION) is SizeClass.HUGE
    assert size_class(671 * BILLION) is SizeClass.GIANT


def test_any_selected_value_of_a_facet_matches() -> None:
    rows = index_entries(
        [
            entry("a"),
            entry("b", modality=Modality.VLM),
            entry("c", modality=Modality.ASR),
        ],
        renders=renders,
    )
    found = search_catalog_with_counts(
        rows, choice={CatalogFacet.MODALITY: frozenset({"llm", "asr"})}
    )
    assert keys(found.entries) == ["a", "c"]
    assert found.counts[CatalogFacet.MODALITY] == {"llm": 1, "vlm": 1, "asr": 1}


def test_every_selected_vendor_must_match() -> None:
    both = (cell(), cell(vendor="ascend", engine="mindie"))
    rows = index_entries([entry("both", cells=both), entry("one", cells=both[:1])], renders=renders)
    found = search_catalog_with_counts(
        rows, choice={CatalogFacet.SERVE: frozenset({"nvidia", "ascend"})}
    )
    assert keys(found.entries) == ["both"]
    one = search_catalog_with_counts(rows, choice={CatalogFacet.SERVE: frozenset({"nvidia"})})
    assert one.counts[CatalogFacet.SERVE] == {"nvidia": 2, "ascend": 1}


def test_unsupported_or_unrendered_vendors_do_not_count() -> None:
    rows = index_entries(
        [
            entry("elsewhere", cells=(cell(engine="xllm"),)),
            entry("experimental", cells=(cell(status="experimental"),)),
            entry("unknown", cells=(cell(status="unknown"),)),
            entry("legacy", cells=(cell(status="legacy"),)),
        ],
        renders=renders,
    )
    assert (
        search_catalog_with_counts(rows, choice={CatalogFacet.SERVE: frozenset({"nvidia"})}).entries
        == ()
    )


def test_every_word_of_the_text_must_occur() -> None:
    rows = index_entries(
        [
            entry("tiny-1b", hf_repo="Maker/Tiny-1B"),
            entry("tiny-2b"),
            entry("huge", family="large"),
        ],
        renders=renders,
    )
    assert keys(search_catalog_with_counts(rows, choice={}, text="TINY maker").entries) == [
        "tiny-1b"
    ]
    assert keys(search_catalog_with_counts(rows, choice={}, text="tiny").entries) == [
        "tiny-1b",
        "tiny-2b",
    ]
    assert search_catalog_with_counts(rows, choice={}, text="nothing").entries == ()


ENTRIES = st.lists(
    st.builds(
        entry,
        key=st.uuids().map(str),
        family=st.sampled_from(["tiny", "small"]),
        modality=st.sampled_from([Modality.LLM, Modality.VLM]),
        parameters=st.sampled_from([None, BILLION // 2, 8 * BILLION]),
        cells=st.lists(
            st.builds(
                cell,
                task=st.sampled_from(["train", "serve"]),
                vendor=st.sampled_from(["nvidia", "ascend"]),
                engine=st.sampled_from(["vllm", "xllm"]),
                status=st.sampled_from(["supported", "unknown"]),
            ),
            max_size=4,
        ).map(tuple),
    ),
    max_size=12,
)
CHOICES = st.fixed_dictionaries(
    {
        CatalogFacet.MODALITY: st.frozensets(st.sampled_from(["llm", "vlm"])),
        CatalogFacet.FAMILY: st.frozensets(st.sampled_from(["tiny", "small"])),
        CatalogFacet.TRAIN: st.frozensets(st.sampled_from(["nvidia", "ascend"])),
        CatalogFacet.SERVE: st.frozensets(st.sampled_from(["nvidia", "ascend"])),
    }
)


@given(entries=ENTRIES, choice=CHOICES)
def test_a_count_equals_the_result_of_selecting_the_value(
    entries: list[CatalogEntry], choice: dict[CatalogFacet, frozenset[str]]
) -> None:
    rows: tuple[IndexedEntry, ...] = index_entries(entries, renders=renders)
    found = search_catalog_with_counts(rows, choice=choice)
    for facet in CatalogFacet:
        for value in {value for row in rows for value in row.values[facet]}:
            own = choice.get(facet, frozenset())
            chosen = own | {value} if facet in VENDOR_FACETS else frozenset({value})
            then = search_catalog_with_counts(rows, choice={**choice, facet: chosen})
            assert found.counts[facet].get(value, 0) == len(then.entries)


@given(entries=ENTRIES, choice=CHOICES, more=CHOICES)
def test_another_facet_never_brings_an_entry_back(
    entries: list[CatalogEntry],
    choice: dict[CatalogFacet, frozenset[str]],
    more: dict[CatalogFacet, frozenset[str]],
) -> None:
    rows = index_entries(entries, renders=renders)
    wide = set(
        keys(
            search_catalog_with_counts(
                rows, choice={CatalogFacet.SERVE: choice[CatalogFacet.SERVE]}
            ).entries
        )
    )
    both = {
        CatalogFacet.SERVE: choice[CatalogFacet.SERVE] | more[CatalogFacet.SERVE],
        CatalogFacet.TRAIN: more[CatalogFacet.TRAIN],
    }
    assert set(keys(search_catalog_with_counts(rows, choice=both).entries)) <= wide
