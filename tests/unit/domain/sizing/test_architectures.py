"""What a configuration says is read whole, and what it lacks is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controlplane.domain.architectures import (
    AttentionCacheKind,
    ConfigRefused,
    architecture_from_catalog,
    find_contradictions,
    generic_decoder,
    parse_architecture,
)
from tests.unit.domain.sizing import model_configs


@pytest.mark.parametrize(
    ("name", "attention", "billions", "active"),
    [
        ("qwen1.5-7b", AttentionCacheKind.MHA, 7.72, 7.72),
        ("qwen2-7b", AttentionCacheKind.GQA, 7.62, 7.62),
        ("llama-3-8b", AttentionCacheKind.GQA, 8.03, 8.03),
        ("gemma-3-27b", AttentionCacheKind.GQA, 27.0, 27.0),
        ("deepseek-v3", AttentionCacheKind.MLA, 671.0, 37.5),
        ("mixtral-8x7b", AttentionCacheKind.GQA, 46.7, 12.9),
        ("falcon-7b", AttentionCacheKind.MQA, 6.92, 6.92),
        ("qwen3-next-80b", AttentionCacheKind.GQA, 79.7, 3.9),
    ],
)
def test_published_models_have_the_parameters_that_are_published(
    name: str, attention: AttentionCacheKind, billions: float, active: float
) -> None:
    built = parse_architecture(model_configs.EVERY[name])
    assert built.attention is attention
    assert built.parameters / 1e9 == pytest.approx(billions, rel=0.005)
    assert built.active_parameters / 1e9 == pytest.approx(active, rel=0.01)


def test_five_of_six_layers_of_gemma_3_have_a_window() -> None:
    built = parse_architecture(model_configs.GEMMA3_27B)
    assert (built.window, built.windowed_layers, built.full_attention_layers) == (1024, 52, 10)
    assert built.name == "Gemma3ForConditionalGeneration"


def test_layer_types_take_precedence_over_the_default_pattern() -> None:
    text = model_configs.GEMMA3_27B["text_config"]
    types = ["sliding_attention"] * 60 + ["full_attention"] * 2
    built = parse_architecture(
        {**model_configs.GEMMA3_27B, "text_config": {**text, "layer_types": types}}
    )
    assert built.windowed_layers == 60


def test_qwen_2_has_a_window_only_if_it_is_switched_on() -> None:
    with_window = {**model_configs.QWEN2_7B, "sliding_window": 4096, "max_window_layers": 20}
    assert parse_architecture(with_window).windowed_layers == 0
    assert parse_architecture({**with_window, "use_sliding_window": True}).windowed_layers == 8


def test_one_in_four_layers_of_qwen3_next_attends() -> None:
    built = parse_architecture(model_configs.QWEN3_NEXT)
    assert built.recurrent is not None
    assert (built.recurrent.layers, built.cached_layers) == (36, 12)


def test_types_of_layers_say_which_are_recurrent() -> None:
    types = ["linear_attention"] * 40 + ["full_attention"] * 8
    built = parse_architecture({**model_configs.QWEN3_NEXT, "layer_types": types})
    assert built.recurrent is not None
    assert (built.recurrent.layers, built.cached_layers) == (40, 8)


def test_known_parameters_take_precedence_over_counted_ones() -> None:
    assert (
        parse_architecture(model_configs.QWEN2_7B, parameters=8_290_000_000).parameters
        == 8_290_000_000
    )


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers", "is missing; it must be a whole number"),
        ({"num_hidden_layers": "28"}, "num_hidden_layers", "got '28'"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers", "from 1 to 1000, got 1000000000"),
        ({"hidden_size": -1}, "hidden_size", "got -1"),
        ({"hidden_size": True}, "hidden_size", "got True"),
        ({"num_key_value_heads": 5}, "num_key_value_heads", "valid values: 1, 2, 4, 7, 14"),
        ({"hidden_size": 3585}, "hidden_size", "must be a multiple of the 28 heads"),
        ({"vocab_size": 0}, "vocab_size", "from 1 to 10000000, got 0"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings", "true or false, got 'no'"),
        ({"architectures": ["FooForCausalLM"]}, "architectures", "'FooForCausalLM' is not known"),
        ({"architectures": None}, "architectures", 'for example ["Qwen2ForCausalLM"], got None'),
        (
            {"num_experts": 8, "num_experts_per_tok": 9},
            "num_experts_per_tok",
            "at most the number of experts, 8",
        ),
        (
            {"layer_types": ["full_attention"] * 5},
            "layer_types",
            "must have one entry for each of the 28 layers, got 5; each layer must be one of full_attention,",
        ),
        ({"layer_types": []}, "layer_types", "each of the 28 layers, got 0"),
        (
            {"layer_types": ["full_attention"] * 27 + ["x"]},
            "layer_types",
            "got 'x'; each layer must be one of full_attention, sliding_attention",
        ),
        ({"layer_types": ["linear_attention"] * 28}, "layer_types", "got 'linear_attention'"),
        ({"layer_types": [["full_attention"]] * 28}, "layer_types", "got ['full_attention']"),
        ({"layer_types": "full_attention"}, "layer_types", "must be a list, got 'full_attention'"),
    ],
)
def test_missing_or_implausible_fields_are_reported_with_value_and_range(
    change: Mapping[str, Any], field: str, message: str
) -> None:
    with pytest.raises(ConfigRefused) as refused:
        parse_architecture({**model_configs.QWEN2_7B, **change})
    found = {finding.field: finding.message for finding in refused.value.findings}
    assert message in found[field]


def test_all_findings_are_reported() -> None:
    with pytest.raises(ConfigRefused) as refused:
        parse_architecture({**model_configs.QWEN2_7B, "vocab_size": None, "intermediate_size": 0})
    assert [each.field for each in refused.value.findings] == ["intermediate_size", "vocab_size"]
    with pytest.raises(ConfigRefused) as refused:
        parse_architecture({**model_configs.LLAMA3_8B, "layer_types": ["x"] * 5})
    number, word = (each.message for each in refused.value.findings)
    assert "the 32 layers, got 5;" in number
    assert "got 'x'" in word


def test_types_of_layers_are_not_counted_against_a_number_of_layers_that_is_wrong() -> None:
    types = ["full_attention"] * 28
    with pytest.raises(ConfigRefused) as refused:
        parse_architecture(
            {**model_configs.QWEN2_7B, "num_hidden_layers": "28", "layer_types": types}
        )
    assert [each.field for each in refused.value.findings] == ["num_hidden_layers"]


_anything = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=5,
)


@given(
    some.dictionaries(some.sampled_from(sorted(model_configs.DEEPSEEK_V3)), _anything),
    some.sampled_from(
        [model_configs.QWEN2_7B, model_configs.DEEPSEEK_V3, model_configs.GEMMA3_27B]
    ),
)
def test_any_configuration_is_parsed_or_refused(
    change: Mapping[str, Any], config: Mapping[str, Any]
) -> None:
    try:
        built = parse_architecture({**config, **change})
    except ConfigRefused as refusal:
        messages = [finding.message for finding in refusal.findings]
    else:
        messages = ["read"] * (0 < built.active_parameters <= built.parameters)
    assert all(messages)
    assert messages


FACTS: Mapping[str, Any] = {
    "id": "qwen2-7b-instruct",
    "architecture": "Qwen2ForCausalLM",
    "params_b": 7.62,
    "layers": 28,
    "hidden_size": 3584,
    "attention_heads": 28,
    "kv_heads": 4,
    "head_dim": 128,
    "intermediate_size": 18_944,
    "context_length": 32_768,
    "dtype": "bfloat16",
}


def test_a_model_that_is_as_the_catalog_says_contradicts_nothing() -> None:
    assert find_contradictions(parse_architecture(model_configs.QWEN2_7B), FACTS) == ()


def test_each_field_that_differs_from_the_catalog_has_both_values() -> None:
    built = parse_architecture({**model_configs.QWEN2_7B, "num_key_value_heads": 28})
    contradictions = {
        each.field: (each.config, each.catalog) for each in find_contradictions(built, FACTS)
    }
    assert contradictions == {"kv_heads": (28, 4)} | (
        {"params_b": contradictions["params_b"]} if "params_b" in contradictions else {}
    )


def test_catalog_facts_give_the_same_architecture_as_the_configuration() -> None:
    from_catalog, from_config = (
        architecture_from_catalog(FACTS),
        parse_architecture(model_configs.QWEN2_7B),
    )
    assert from_catalog.parameters == 7_620_000_000
    for field in ("layers", "hidden", "kv_heads", "vocabulary", "attention", "tied"):
        assert getattr(from_catalog, field) == getattr(from_config, field)


def test_small_catalog_models_have_tied_embeddings() -> None:
    small = {
        **FACTS,
        "id": "qwen2-0.5b-instruct",
        "params_b": 0.49,
        "layers": 24,
        "hidden_size": 896,
        "attention_heads": 14,
        "kv_heads": 2,
        "head_dim": 64,
        "intermediate_size": 4864,
    }
    assert architecture_from_catalog(small).tied
    assert not architecture_from_catalog(FACTS).tied


@pytest.mark.parametrize("billions", [None, 0, -1, True, "7", 1e9])
def test_a_catalog_entry_without_a_size_is_refused(billions: Any) -> None:
    with pytest.raises(ConfigRefused, match="params_b must be > 0"):
        architecture_from_catalog({**FACTS, "params_b": billions})


def test_a_generic_decoder_has_about_the_given_parameters() -> None:
    for parameters in (10_000_000, 500_000_000, 7_000_000_000, 70_000_000_000):
        built = generic_decoder(parameters)
        assert 0.6 < 12 * built.layers * built.hidden**2 / parameters < 1.5
