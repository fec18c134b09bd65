"""What makes a folder a model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.registry.versions import (
    ModelConfig,
    ModelRefused,
    check_files,
    check_tokenizer,
    count_safetensors_parameters,
    parse_licence,
    parse_model_config,
    parse_model_shape,
    weight_paths,
)

QWEN = {"architectures": ["Qwen2ForCausalLM"], "max_position_embeddings": 512}


@pytest.mark.parametrize(
    ("config", "length"),
    [
        (QWEN, 512),
        ({"architectures": ["A"], "n_positions": 1024}, 1024),
        ({"architectures": ["A"], "seq_length": 2048}, 2048),
        ({"architectures": ["A"], "text_config": {"max_position_embeddings": 99}}, 99),
        ({"architectures": ["A"]}, 0),
        ({"architectures": ["A"], "max_position_embeddings": "512"}, 0),
    ],
)
def test_the_context_length_is_found_where_families_keep_it(
    config: dict[str, Any], length: int
) -> None:
    assert parse_model_config(config).context_length == length


def test_the_architecture_is_the_first_that_is_named() -> None:
    given = {**QWEN, "architectures": ["First", "Second"]}
    assert parse_model_config(given) == ModelConfig(
        architecture="First", context_length=512, raw=given
    )


@pytest.mark.parametrize(
    ("more", "scheme", "written"),
    [
        ({}, "", ""),
        ({"quantization_config": None}, "", ""),
        ({"quantize": "W8A8"}, "w8a8", "modelslim"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 8}}, "w8a16", "gptq"),
        ({"quantization_config": {"quant_method": "FP8"}}, "fp8", "fp8"),
        ({"quantization_config": {"quant_method": "awq", "bits": 10**60}}, "awq", "awq"),
        (
            {"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {}}},
            "compressed-tensors",
            "compressed-tensors",
        ),
        (
            {
                "quantization_config": {
                    "quant_method": "compressed-tensors",
                    "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}},
                }
            },
            "fp8",
            "compressed-tensors",
        ),
        (
            {
                "quantization_config": {
                    "quant_method": "compressed-tensors",
                    "config_groups": {"g": {"weights": {"num_bits": True}}},
                }
            },
            "compressed-tensors",
            "compressed-tensors",
        ),
    ],
)
def test_the_quantization_of_weights_is_parsed(
    more: dict[str, object], scheme: str, written: str
) -> None:
    config = parse_model_config({**QWEN, **more})
    assert (config.scheme, config.format) == (scheme, written)


@pytest.mark.parametrize("method", [None, "", 8, "x" * 41, "a\nb"])
def test_quantized_weights_without_a_method_are_refused(method: object) -> None:
    with pytest.raises(ModelRefused, match="must name its quant_method"):
        parse_model_config({**QWEN, "quantization_config": {"quant_method": method}})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([], "must be a JSON object"),
        ("text", "must be a JSON object"),
        (None, "must be a JSON object"),
        ({}, "must name the architecture"),
        ({"architectures": []}, "must name the architecture"),
        ({"architectures": "Qwen2ForCausalLM"}, "must name the architecture"),
        ({**QWEN, "architectures": [""]}, "must be a name of at most 120 characters"),
        ({**QWEN, "architectures": ["A" * 121]}, "must be a name of at most 120 characters"),
        ({**QWEN, "architectures": [{"name": "A"}]}, "must be a name of at most 120"),
        ({**QWEN, "max_position_embeddings": 2**31}, "must be 0 to 2147483647, got 2147483648"),
        ({**QWEN, "max_position_embeddings": -1}, "must be 0 to 2147483647, got -1"),
        ({**QWEN, "model_type": "mine", "auto_map": {"AutoModel": "m.M"}}, "model_type 'mine'"),
        (
            {**QWEN, "model_type": ["qwen2"], "auto_map": {"AutoModel": "m.M"}},
            "requires custom code",
        ),
    ],
)
def test_a_configuration_that_cannot_be_trusted_is_refused(config: object, message: str) -> None:
    with pytest.raises(ModelRefused, match=message):
        parse_model_config(config)


def test_remote_code_is_stripped_from_native_architectures() -> None:
    config = {**QWEN, "model_type": "deepseek_v3", "auto_map": {"AutoConfig": "c.DeepseekV3Config"}}
    assert dict(parse_model_config(config).raw) == {**QWEN, "model_type": "deepseek_v3"}


def test_a_tokenizer_that_needs_code_is_refused() -> None:
    check_tokenizer({"tokenizer_class": "LlamaTokenizerFast"})
    with pytest.raises(ModelRefused, match="requires custom code"):
        check_tokenizer(
            {"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}}
        )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_any_json_is_parsed_or_refused(config: object) -> None:
    try:
        parse_model_config(config)
    except ModelRefused:
        return
    assert isinstance(config, dict)
    assert config["architectures"]


@pytest.mark.parametrize("shape", [[2**62, 2], [2**64], [-1], ["3"], [1.5]])
def test_a_shape_that_no_tensor_has_is_refused(shape: list[Any]) -> None:
    with pytest.raises(ModelRefused, match="tensor 'weights'"):
        count_safetensors_parameters({"weights": {"shape": shape}})


def test_a_folder_needs_a_configuration_and_safetensors() -> None:
    check_files(frozenset({"config.json", "model.safetensors"}))
    with pytest.raises(ModelRefused, match=r"there is no config\.json"):
        check_files(frozenset({"model.safetensors"}))
    with pytest.raises(ModelRefused, match=r"there are no \.safetensors weights in the folder$"):
        check_files(frozenset({"config.json"}))


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "weights.pt", "model.pkl", "a.ckpt", "m.pth"]
)
def test_weights_that_can_run_code_are_named_as_the_reason(name: str) -> None:
    with pytest.raises(ModelRefused, match=f"{name} can run code when it is loaded: convert it"):
        check_files(frozenset({"config.json", name}))


def test_parameters_are_the_product_of_each_shape_without_the_metadata() -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "embed": {"shape": [100, 16]},
        "norm": {"shape": [16]},
        "scale": {"shape": []},
    }
    assert count_safetensors_parameters(header) == 1600 + 16 + 1


def test_the_shape_is_parsed_from_the_configuration() -> None:
    shape = parse_model_shape({"n_layer": 12, "n_embd": 768, "n_head": 12, "dtype": "float16"})
    assert (shape.layers, shape.hidden, shape.heads, shape.dtype) == (12, 768, 12, "float16")
    assert shape.key_value_heads is None


def test_the_shape_of_a_multimodal_model_is_that_of_its_text_model() -> None:
    shape = parse_model_shape({"model_type": "both", "text_config": {"num_hidden_layers": 4}})
    assert (shape.family, shape.layers) == ("both", 4)


@pytest.mark.parametrize(
    "config", [None, [], {"n_layer": "12"}, {"n_layer": True}, {"n_layer": -1}]
)
def test_invalid_values_count_as_missing(config: object) -> None:
    assert parse_model_shape(config).layers is None


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlicense: mit\n---\n# text", "mit"),
        ('---\ntags:\n- a\nlicense: "apache-2.0"\n---\n', "apache-2.0"),
        ("# text\nlicense: mit", ""),
        ("---\n---\nlicense: mit", ""),
        ("", ""),
    ],
)
def test_the_licence_is_parsed_from_the_front_matter(card: str, licence: str) -> None:
    assert parse_licence(card) == licence


def test_a_pipeline_of_models_is_described_by_its_index_and_has_weights_in_its_parts() -> None:
    names = ["model_index.json", "unet/config.json", "unet/model.safetensors"]
    check_files(names)
    assert weight_paths(names) == ["unet/model.safetensors"]
    with pytest.raises(ModelRefused, match=r"no \.safetensors weights"):
        check_files(["config.json", "unet/model.safetensors"])
    index = {"_class_name": "LatentConsistencyModelPipeline", "unet": ["diffusers", "X"]}
    config = parse_model_config(index, path="model_index.json")
    assert (config.architecture, config.context_length) == ("LatentConsistencyModelPipeline", 0)
    for name in (None, ["my_code", "Pipeline"], "x" * 200):
        with pytest.raises(ModelRefused, match="_class_name"):
            parse_model_config({"_class_name": name}, path="model_index.json")
