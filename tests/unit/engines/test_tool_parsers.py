"""Which parsers a model is served with: by its files and its catalog entry, in versions that have them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from apps.models.selectors.catalog import catalog_model_facts, published_catalog
from controlplane.adapters.engines.sglang import SglangEngine
from controlplane.adapters.engines.tool_parsers import (
    FAMILIES,
    MIN_VERSIONS,
    ParserKind,
    model_family,
    parser_names,
)
from controlplane.adapters.engines.vllm import VllmEngine
from controlplane.ports.adapter_registry import all_chips
from controlplane.ports.engines import ModelFacts
from tests.unit.engines.serving_requests import PLAIN, findings, rendered

HOME = {
    "vllm": "nvidia-h800",
    "sglang": "nvidia-h800",
    "xllm": "ascend-910b3",
    "mindie": "ascend-910b3",
}
HERMES = "{{ '<tool_call>' ~ tool | tojson }}{% if enable_thinking %}<think>{% endif %}"
XML = "<tool_call>\n<function=name>\n<parameter=key>"
DEEPSEEK = "<｜tool▁calls▁begin｜><｜tool▁sep｜>"
GLM45 = "{{ '\\n<tool_call>' + tc.name }}<arg_key>"
GLM47 = "{{- '<tool_call>' + tc.name -}}<arg_key>"


def model(architecture: str, template: str = "", **facts: Any) -> ModelFacts:
    """A model of a user, with a name that says the wrong thing."""
    empty = {"catalog_key": "", "config": {}}
    return replace(
        PLAIN,
        name="kimi-coder-v3.1-4.7-llama3",
        architecture=architecture,
        chat_template=template,
        **(empty | facts),
    )


#: Model, and its parsers of tool calls and reasoning in vLLM and SGLang; empty for none.
EXPECTED = {
    "qwen3": (model("Qwen3MoeForCausalLM", HERMES), "hermes qwen3 qwen25 qwen3"),
    "qwen3, instruct only": (
        model("Qwen3MoeForCausalLM", "<tool_call>"),
        "hermes - qwen25 -",
    ),
    "qwen3-coder": (model("Qwen3MoeForCausalLM", XML), "qwen3_coder - qwen3_coder -"),
    "qwen3, catalog": (
        model("Qwen3MoeForCausalLM", catalog_key="qwen3-30b-a3b"),
        "hermes qwen3 qwen25 qwen3",
    ),
    "qwen3, its template before the catalog": (
        model("Qwen3MoeForCausalLM", XML, catalog_key="qwen3-30b-a3b"),
        "qwen3_coder - qwen3_coder -",
    ),
    "qwen3, nothing known": (model("Qwen3MoeForCausalLM"), "- - - -"),
    "qwen3, template without tools": (
        model("Qwen3ForCausalLM", "{{ messages }}", catalog_key="qwen3-8b"),
        "- - - -",
    ),
    "qwen2.5": (model("Qwen2ForCausalLM", "<tool_call>"), "hermes - qwen25 -"),
    "qwq": (
        model("Qwen2ForCausalLM", "<tool_call> <think>\n"),
        "hermes deepseek_r1 qwen25 deepseek-r1",
    ),
    "r1-distill-qwen": (
        model("Qwen2ForCausalLM", f"<｜Assistant｜>{DEEPSEEK}</think>"),
        "- deepseek_r1 - deepseek-r1",
    ),
    "r1-distill-llama": (
        model("LlamaForCausalLM", catalog_key="deepseek-r1-distill-llama-8b"),
        "- deepseek_r1 - deepseek-r1",
    ),
    "qwen1.5": (model("Qwen2ForCausalLM", catalog_key="qwen1.5-7b-chat"), "- - - -"),
    "deepseek-v3": (
        model("DeepseekV3ForCausalLM", f"{DEEPSEEK}```json"),
        "deepseek_v3 - deepseekv3 -",
    ),
    "deepseek-r1": (
        model("DeepseekV3ForCausalLM", f"{DEEPSEEK}```json</think>"),
        "deepseek_v3 deepseek_r1 deepseekv3 deepseek-r1",
    ),
    "deepseek-v3.1": (
        model("DeepseekV3ForCausalLM", f"{DEEPSEEK}</think>"),
        "deepseek_v31 deepseek_v3 deepseekv31 deepseek-v3",
    ),
    "moonlight": (
        model("DeepseekV3ForCausalLM", catalog_key="moonlight-16b-a3b-instruct"),
        "- - - -",
    ),
    "kimi-k2": (
        model("DeepseekV3ForCausalLM", config={"model_type": "kimi_k2"}),
        "kimi_k2 kimi_k2 kimi_k2 kimi_k2",
    ),
    "kimi-k2.5": (model("KimiK25ForConditionalGeneration"), "kimi_k2 kimi_k2 kimi_k2 kimi_k2"),
    "kimi-k3": (model("KimiK3ForConditionalGeneration"), "kimi_k3 kimi_k3 kimi_k3 kimi_k3"),
    "glm-4.5": (model("Glm4MoeForCausalLM", GLM45), "glm45 glm45 glm45 glm45"),
    "glm-4.7": (model("Glm4MoeForCausalLM", GLM47), "glm47 glm45 glm47 glm45"),
    "glm-5": (model("GlmMoeDsaForCausalLM"), "glm47 glm45 glm47 glm45"),
    "glm-4-0414": (model("Glm4ForCausalLM", catalog_key="glm-4-9b-0414"), "- - - -"),
    "minimax-m3": (
        model("MiniMaxM3SparseForConditionalGeneration"),
        "minimax_m3 minimax_m3 minimax-m3 minimax-m3",
    ),
    "step-3": (model("Step3VLForConditionalGeneration"), "step3 step3 step3 step3"),
    "step-3.5": (model("Step3p5ForCausalLM"), "step3p5 step3p5 step3p5 step3p5"),
    "hunyuan-a13b": (model("HunYuanMoEV1ForCausalLM"), "hunyuan_a13b hunyuan_a13b - -"),
    "hunyuan-3": (model("HYV3ForCausalLM"), "hy_v3 hy_v3 hunyuan hunyuan"),
    "lfm2": (model("Lfm2MoeForCausalLM"), "lfm2 - lfm2 -"),
    "granite-3": (model("GraniteForCausalLM", "<|tool_call|>"), "granite granite - -"),
    "granite-4": (model("GraniteMoeHybridForCausalLM", "<tool_call>"), "granite4 - - -"),
    "llama-4": (model("Llama4ForConditionalGeneration"), "llama4_pythonic - pythonic -"),
    "llama-4 in JSON": (
        model("Llama4ForConditionalGeneration", '{"name": n, "parameters": p}'),
        "llama4_json - - -",
    ),
    "llama-3.1": (
        model("LlamaForCausalLM", '{{- "Environment: ipython\\n" }}'),
        "llama3_json - llama3 -",
    ),
    "llama-3": (model("LlamaForCausalLM", catalog_key="llama-3-8b-instruct"), "- - - -"),
    "hermes": (model("LlamaForCausalLM", "<|im_start|><tool_call>"), "hermes - hermes -"),
    "mistral": (model("MistralForCausalLM", "[TOOL_CALLS]"), "mistral - mistral -"),
    "magistral": (
        model("MistralForCausalLM", "[TOOL_CALLS][THINK]"),
        "mistral mistral mistral mistral",
    ),
    "mistral, first version": (model("MistralForCausalLM", "[INST]"), "- - - -"),
    "phi-4-mini": (
        model("Phi3ForCausalLM", config={"vocab_size": 200_064}),
        "phi4_mini_json - - -",
    ),
    "phi-4": (model("Phi3ForCausalLM", config={"vocab_size": 100_352}), "- - - -"),
}


def parsers(facts: ModelFacts) -> str:
    family = model_family(facts)
    if family is None:
        return "- - - -"
    return " ".join(name or "-" for name in (*family.vllm, *family.sglang))


def test_a_family_is_told_by_files_and_catalog_and_never_by_a_name() -> None:
    found = {name: parsers(facts) for name, (facts, _) in EXPECTED.items()}
    assert found == {name: expected for name, (_, expected) in EXPECTED.items()}


def test_models_of_the_catalog_that_document_tool_calls_have_a_parser() -> None:
    entries = published_catalog().entries
    having = {
        key
        for key, entry in entries.items()
        if model_family(catalog_model_facts(entry)) is not None
    }
    # Two of each family that has one, and those that must have none.
    assert having >= {
        *("qwen2.5-7b-instruct", "qwq-32b", "qwen3-8b", "qwen3-vl-8b-instruct"),
        *("llama-3.1-8b-instruct", "deepseek-v3", "deepseek-r1", "deepseek-v3.1"),
        *("deepseek-r1-distill-qwen-7b", "glm-4.5", "kimi-k2-instruct", "gpt-oss-20b"),
        *("mistral-nemo-instruct-2407", "internlm2.5-7b-chat"),
    }
    assert not having & {
        *("qwen1.5-7b-chat", "qwen2-7b-instruct", "llama-2-7b-chat", "llama-3-8b-instruct"),
        *("yi-6b-chat", "glm-4-9b-0414", "moonlight-16b-a3b-instruct", "phi-4"),
        *("mistral-7b-instruct-v0.2", "mixtral-8x7b-instruct", "deepseek-llm-7b-chat"),
    }


#: Of no family: a second name or an older form of a parser, one whose package the image lacks, or no source says
#: by what its models are known.
WITHOUT_FAMILY = {
    "vllm": {
        ParserKind.TOOLS: "beam cohere_command3 cohere_command4 dots gigachat3 granite-20b-fc hf minicpm5 muse "
        "muse_glimmer musespark1x plamo3 pythonic qwen3_json qwen3_xml xlam",
        ParserKind.REASONING: "beam cohere_command3 cohere_command4 glm47 granite_thinking_parser hf holo2 "
        "minicpmv minimax_m2_append_think muse muse_glimmer musespark1x plamo3",
    },
    "sglang": {
        ParserKind.TOOLS: "beam cohere_command4 dots gigachat3 gigachat35 glm iquest_q1 minicpm5 muse nanbeige "
        "qwen response_template spark25 trinity",
        ParserKind.REASONING: "beam cohere_command4 dots gigachat35 granite_thinking_parser iquest_q1 kimi "
        "minimax-append-think muse nanbeige qwen3-thinking response_template",
    },
}


def test_every_parser_has_a_family_or_is_known_to_have_none() -> None:
    for engine, kinds in WITHOUT_FAMILY.items():
        for place, kind in enumerate(ParserKind):
            names = kinds[kind]
            used = {getattr(family, engine)[place] for family in FAMILIES}
            assert set(MIN_VERSIONS[engine][kind]) - used == set(names.split()), (engine, kind)


def test_every_parser_of_a_family_has_a_first_release_that_the_plug_in_accepts() -> None:
    for engine, kinds in MIN_VERSIONS.items():
        for place, kind in enumerate(ParserKind):
            releases = kinds[kind]
            names = {getattr(family, engine)[place] for family in FAMILIES} - {""}
            assert names <= set(releases), (engine, kind)
            refused = {
                release
                for release in set(releases.values())
                if "engine_version"
                in findings(engine, {"engine_version": release}, chip=HOME[engine])
            }
            assert refused == set(), (engine, kind)


@pytest.mark.parametrize(
    ("engine", "chip", "spec", "field", "message"),
    [
        (
            "vllm",
            "nvidia-h800",
            {},
            "tool_call_parser",
            "'kimi_k3', which vLLM has since version 0.27.0",
        ),
        ("vllm", "nvidia-h800", {"engine_version": "0.26.0"}, "tool_call_parser", "has 0.26.0"),
        ("vllm", "nvidia-h800", {"engine_version": "0.27.0"}, "", ""),
        ("vllm", "nvidia-h800", {"tool_call_parser": "off"}, "", ""),
        (
            "vllm",
            "nvidia-h800",
            {"tool_call_parser": "off", "reasoning_parser": "auto"},
            "reasoning_parser",
            "set engine_version to 0.27.0 or later, or change reasoning_parser",
        ),
        (
            "vllm",
            "nvidia-h800",
            {"tool_call_parser": "hy_v4"},
            "tool_call_parser",
            "since version 0.29.0",
        ),
        ("vllm", "nvidia-h800", {"tool_call_parser": "one_of_a_plug_in"}, "", ""),
        (
            "vllm_ascend",
            "ascend-910b3",
            {},
            "tool_call_parser",
            "vLLM Ascend has since version 0.27.0",
        ),
        ("sglang", "nvidia-h800", {}, "", ""),
        # Its image is that of one version, whatever the default is.
        (
            "sglang",
            "ascend-910b3",
            {},
            "tool_call_parser",
            "since version 0.5.17, and the image has 0.5.14",
        ),
    ],
)
def test_a_parser_that_the_version_lacks_is_refused_with_the_version_that_has_it(
    engine: str, chip: str, spec: dict[str, Any], field: str, message: str
) -> None:
    found = findings(engine, spec, chip=chip, model=EXPECTED["kimi-k3"][0])
    assert set(found) == ({field} if field else set())
    assert message in found.get(field, "")


def test_a_deployment_of_an_earlier_release_starts_without_the_parser() -> None:
    """It was accepted before the family was known; an unknown name would stop the engine."""
    facts = EXPECTED["kimi-k3"][0]

    def argv(**spec: Any) -> str:
        spec = {"model_name": "assistant", **spec}
        return " ".join(rendered("vllm", spec, chip="nvidia-h800", model=facts).roles[0].argv)

    assert "parser" not in argv(reasoning_parser="auto")
    named = argv(engine_version="0.27.0", reasoning_parser="auto")
    assert re.findall(r"--(\S+)-parser (\S+)", named) == [
        ("tool-call", "kimi_k3"),
        ("reasoning", "kimi_k3"),
    ]
    assert "--tool-call-parser kimi_k3" in argv(tool_call_parser="kimi_k3")


def test_reasoning_of_models_that_always_reason_is_separated_by_default() -> None:
    """Hybrid models and those without reasoning need ``auto``; ``off`` leaves the reasoning in the text."""
    minimax = model("MiniMaxM2ForCausalLM")
    gpt_oss = model("GptOssForCausalLM")
    reasoning = {"qwq", "r1-distill-qwen", "r1-distill-llama", "deepseek-r1", "magistral"}
    facts = {name: EXPECTED[name][0] for name in EXPECTED} | {
        "minimax-m2": minimax,
        "gpt-oss": gpt_oss,
    }

    def separated(**spec: Any) -> set[str]:
        found = set()
        for name, each in facts.items():
            names = {
                engine: parser_names(
                    {"tool_call_parser": None, "reasoning_parser": None, **spec},
                    model=each,
                    engine=engine,
                    version="0.33.0" if engine == "vllm" else "0.5.23",
                ).reasoning
                for engine in ("vllm", "sglang")
            }
            assert bool(names["vllm"]) >= bool(names["sglang"]), name
            found |= {name} if names["vllm"] else set()
        return found

    assert separated() == reasoning | {"minimax-m2", "gpt-oss"}
    assert separated(reasoning_parser="") == separated()
    assert separated(reasoning_parser="auto") > separated() | {"qwen3"}
    assert separated(reasoning_parser="off") == set()
    argv = rendered(
        "vllm", {"model_name": "assistant"}, chip="nvidia-h800", model=EXPECTED["qwq"][0]
    )
    assert "--reasoning-parser deepseek_r1" in " ".join(argv.roles[0].argv)


def test_the_version_of_a_fixed_image_is_that_of_its_tag() -> None:
    chips = all_chips()
    sglang, vllm = SglangEngine(), VllmEngine()
    assert sglang.version(chips["ascend-910b3"], {}) == "0.5.14"
    assert sglang.version(chips["nvidia-h800"], {}) == sglang.profile().default_version
    assert vllm.version(chips["nvidia-h800"], {"engine_version": "0.30.0"}) == "0.30.0"
