"""The data files become entries, or a list of what is wrong with which field."""

from __future__ import annotations

import pytest

from controlplane.domain.catalog import CatalogTask, SupportCaveat, SupportLevel, strongest_support
from controlplane.domain.catalog.parsing import CatalogRefused, read_catalog

SOURCES = '[sources]\nS1 = "a table"\nS2 = "another table"\n'
ENTRY = """
[[models]]
key = "tiny-1b"
title = "Tiny-1B"
family = "tiny"
modality = "llm"
tasks = ["chat"]
architecture = "TinyForCausalLM"
dtype = "bfloat16"
confidence = { architecture = "high" }
evidence = ["S1"]
"""


def refused(models: str, sources: str = SOURCES) -> list[str]:
    with pytest.raises(CatalogRefused) as caught:
        read_catalog({"sources.toml": sources, "llm.toml": models})
    return list(caught.value.problems)


def with_cell(cell: str) -> str:
    return f"{ENTRY}cells = [{{ {cell} }}]\n"


def test_an_entry_keeps_what_the_file_says() -> None:
    cell = 'task = "serve", vendor = "nvidia", engine = "vllm", status = "experimental", '
    catalog = read_catalog(
        {
            "llm.toml": ENTRY
            + "layers = 4\nheads = 8\nkv_heads = 2\n"
            + f'cells = [{{ {cell} evidence = ["S2"], caveat = "architecture" }}]\n',
            "sources.toml": SOURCES,
        }
    )
    entry = catalog.entries["tiny-1b"]
    assert (entry.layers, entry.heads, entry.kv_heads) == (4, 8, 2)
    assert entry.parameters is None
    (claim,) = entry.cells
    assert claim.task is CatalogTask.SERVE
    assert claim.status is SupportLevel.EXPERIMENTAL
    assert claim.caveat is SupportCaveat.ARCHITECTURE
    assert catalog.sources["S2"].title == "another table"


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (
            ENTRY.replace('title = "Tiny-1B"\n', ""),
            "llm.toml: tiny-1b: title is missing",
        ),
        (
            ENTRY + 'layers = "many"\n',
            "llm.toml: tiny-1b: layers must be a whole number of at least 1, got 'many'",
        ),
        (ENTRY + "layers = 0\n", "layers must be a whole number of at least 1, got 0"),
        (ENTRY + "layers = true\n", "layers must be a whole number of at least 1, got True"),
        (ENTRY + "width = 4\n", "width is not a field; there are key, title"),
        (ENTRY.replace('"llm"', '"smell"'), "modality must be one of llm, vlm"),
        (ENTRY.replace('["S1"]', '["S9"]'), "evidence 'S9' is no source; there are S1, S2"),
        (ENTRY.replace('"high"', '"certain"'), "confidence must be a table of architecture"),
        (
            ENTRY + "heads = 8\nkv_heads = 3\n",
            "kv_heads (3) must divide heads (8)",
        ),
        (
            ENTRY + "parameters = 5\nactive_parameters = 6\n",
            "active_parameters (6) cannot be more than parameters (5)",
        ),
        (ENTRY + ENTRY, "the key 'tiny-1b' stands there twice"),
        ("[[models]\n", "llm.toml: not TOML"),
        ('models = ["x"]\n', "an entry must be a table, got 'x'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_value(models: str, said: str) -> None:
    assert any(said in problem for problem in refused(models))


def test_every_problem_is_reported() -> None:
    problems = refused(ENTRY + 'layers = "many"\nheads = -1\nhue = "red"\n')
    assert [problem.split(": ")[2].split(" ")[0] for problem in problems] == [
        "layers",
        "heads",
        "hue",
    ]


CLAIM = 'task = "serve", vendor = "nvidia", engine = "vllm"'


@pytest.mark.parametrize("status", ["supported", "experimental", "legacy", "unsupported"])
def test_a_cell_without_evidence_claims_nothing(status: str) -> None:
    (problem,) = refused(with_cell(f'{CLAIM}, status = "{status}"'))
    assert f"serve/nvidia/vllm: {status} needs evidence; without any it is unknown" in problem


@pytest.mark.parametrize("caveat", ["hearsay", "generic"])
def test_hearsay_supports_no_claim(caveat: str) -> None:
    cell = f'{CLAIM}, status = "supported", evidence = ["S1"], caveat = "{caveat}"'
    (problem,) = refused(with_cell(cell))
    assert "supports no claim; the status must be unknown, got supported" in problem


def test_a_listed_architecture_is_at_most_experimental() -> None:
    cell = f'{CLAIM}, status = "supported", evidence = ["S1"], caveat = "architecture"'
    (problem,) = refused(with_cell(cell))
    assert "at most experimental" in problem


def test_a_status_of_its_own_is_refused() -> None:
    (problem,) = refused(with_cell(f'{CLAIM}, status = "likely"'))
    assert "status must be one of supported, experimental, legacy, unknown, unsupported" in problem


def test_a_cell_may_occur_only_once() -> None:
    cell = f'{{ {CLAIM}, status = "unknown" }}'
    (problem,) = refused(f"{ENTRY}cells = [{cell}, {cell}]\n")
    assert "serve/nvidia/vllm stands there 2 times" in problem


def test_the_strongest_claim_counts_and_none_is_unknown() -> None:
    assert strongest_support([SupportLevel.UNSUPPORTED, SupportLevel.LEGACY]) is SupportLevel.LEGACY
    assert strongest_support([SupportLevel.UNSUPPORTED]) is SupportLevel.UNSUPPORTED
    assert strongest_support([]) is SupportLevel.UNKNOWN


def test_the_digest_follows_the_content_and_not_the_order_of_cells() -> None:
    first = f'{{ {CLAIM}, status = "unknown" }}'
    second = '{ task = "train", vendor = "nvidia", engine = "vllm", status = "unknown" }'
    texts = [f"{ENTRY}cells = [{one}]\n" for one in (f"{first}, {second}", f"{second}, {first}")]
    one, other = (
        read_catalog({"s.toml": SOURCES, "m.toml": text}).entries["tiny-1b"] for text in texts
    )
    changed = read_catalog({"s.toml": SOURCES, "m.toml": texts[0].replace("Tiny-1B", "Tiny")})
    assert one.digest == other.digest
    assert one.digest != changed.entries["tiny-1b"].digest
