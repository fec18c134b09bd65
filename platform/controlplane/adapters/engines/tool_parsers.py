"""Parsers of tool calls and of reasoning, by family of models.

An engine finds tool calls in the text of a model by a parser that fits the model's chat template. The family of a
model follows from its own files: its architecture, its ``config.json``, its chat template; where the template is
not known, from its entry in the catalog, which a fine-tuned version has from its base. Names that users give do
not count, and where these sources leave more than one format there is no family: a wrong parser loses answers.

Names of parsers and the first release of each are those of the published packages of vLLM 0.23.0 to 0.33.0
(``vllm/tool_parsers``, ``vllm/reasoning``) and SGLang 0.5.14 to 0.5.23 (``srt/function_call``, ``srt/parser``); a
test compares the tables with the oldest and the newest. Those of xLLM are in ``xllm/function_call`` and
``xllm/parser`` at 87e8d6ed (0.10.0). MindIE takes the parser of the type of the model unless another is named, and
separates reasoning where it is told to (MindIE-LLM at 8b4871a). ``solar_open2`` is in the repository of vLLM at
0064cc9, but in none of the packages 0.23.0, 0.27.0, 0.27.1, 0.28.0, 0.30.0 and 0.33.0, which have no such model
either (vllm-project/vllm#51129 was open when it was read), nor in SGLang 0.5.14, 0.5.17 and 0.5.23; 0.33.0 and
0.5.23 are the newest on 2026-11-29. So it has no first release: a spec may name it, and no family has it.

Which family has which parser follows the documentation of vLLM (``docs/features/tool_calling.md`` at 0064cc9,
``reasoning_outputs.md`` at 00256d5, its recipes for GLM-5 and MiniMax-M3) and SGLang (``advanced_features`` of its
documentation, ``srt/parser/template_detection.py`` of 0.5.23), and what the parsers themselves search for. It was
not run on hardware.

Families whose models reason in every answer have ``always_reasons``. Not among them are those with hybrid models
or with models that do not reason, such as Qwen3 and Kimi K2: some parsers take an answer without reasoning for
reasoning. Which families these are is general knowledge of the published models.

General knowledge of the published models, with no file read for it, are: the prompts of DeepSeek-R1, its distilled
models, QwQ, Llama 3.1 and 4, ERNIE 4.5, InternLM2.5 and Qwen3 without reasoning; the type of Kimi K2; the
vocabulary of Phi-4-mini; the parsers of Nemotron H. Not among the families are those whose parser needs a package
that the image lacks (``cohere_command3``), and those of which no source says by what their models are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from packaging.version import Version

from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.ports.engines import ModelFacts

AUTO, OFF = "auto", "off"


class ParserKind(StrEnum):
    """What a parser finds; also the field of a spec that names one."""

    TOOLS = "tool_call_parser"
    REASONING = "reasoning_parser"


def _releases(**names: str) -> Mapping[str, str]:
    """Parser → the first release with it, from the names of each release: ``v0_24_0="minimax_m3"``."""
    return {
        name: release.removeprefix("v").replace("_", ".")
        for release, each in names.items()
        for name in each.split()
    }


_VLLM = {
    ParserKind.TOOLS: _releases(
        v0_23_0="apertus cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 "
        "ernie45 functiongemma gemma4 gigachat3 glm45 glm47 granite granite-20b-fc granite4 hermes "
        "hunyuan_a13b hy_v3 internlm jamba kimi_k2 lfm2 llama3_json llama4_json llama4_pythonic longcat mimo "
        "minicpm5 minimax_m2 mistral olmo3 openai phi4_mini_json poolside_v1 pythonic qwen3_coder qwen3_xml "
        "seed_oss step3 step3p5 xlam",
        v0_24_0="minimax_m3",
        v0_26_0="inkling",
        v0_27_0="kimi_k3",
        v0_28_0="dots ling3 muse_glimmer",
        v0_29_0="hy_v4",
        v0_30_0="deepseek_v41 k2_horizon",
        v0_32_0="hf plamo3 qwen3_json",
        v0_33_0="beam muse musespark1x step5",
    ),
    ParserKind.REASONING: _releases(
        v0_23_0="cohere_command3 cohere_command4 deepseek_r1 deepseek_v3 deepseek_v4 ernie45 gemma4 glm45 "
        "granite holo2 hunyuan_a13b hy_v3 kimi_k2 mimo minimax_m2 minimax_m2_append_think mistral nemotron_v3 "
        "olmo3 openai_gptoss poolside_v1 qwen3 seed_oss step3 step3p5",
        v0_24_0="glm47 minimax_m3",
        v0_26_0="inkling",
        v0_27_0="kimi_k3",
        v0_28_0="ling3 muse_glimmer",
        v0_29_0="hy_v4",
        v0_30_0="deepseek_v41 k2_horizon",
        v0_31_0="granite_thinking_parser",
        v0_32_0="hf minicpmv plamo3",
        v0_33_0="beam muse musespark1x step5",
    ),
}
_SGLANG = {
    ParserKind.TOOLS: _releases(
        v0_5_14="apertus2509 cohere_command4 deepseekv3 deepseekv31 deepseekv32 deepseekv4 gemma4 gigachat3 glm "
        "glm45 glm47 gpt-oss hermes hunyuan interns1 kimi_k2 lfm2 llama3 mimo minicpm5 minimax-m2 mistral "
        "poolside_v1 pythonic qwen qwen25 qwen3_coder step3 step3p5 trinity",
        v0_5_16="inkling minimax-m3",
        v0_5_17="kimi_k3",
        v0_5_18="muse",
        v0_5_19="dots ling3 spark25",
        v0_5_20="k2_horizon nanbeige",
        v0_5_21="deepseekv41 gigachat35 iquest_q1",
        v0_5_23="beam response_template",
    ),
    ParserKind.REASONING: _releases(
        v0_5_14="apertus2509 cohere_command4 deepseek-r1 deepseek-v3 deepseek-v4 gemma4 glm45 gpt-oss hunyuan "
        "interns1 kimi kimi_k2 mimo minimax minimax-append-think mistral nemotron_3 poolside_v1 qwen3 "
        "qwen3-thinking step3 step3p5",
        v0_5_16="inkling minimax-m3",
        v0_5_17="kimi_k3",
        v0_5_18="muse",
        v0_5_19="dots ling3",
        v0_5_20="granite_thinking_parser k2_horizon nanbeige",
        v0_5_21="deepseek-v41 gigachat35 iquest_q1",
        v0_5_23="beam response_template",
    ),
}
_XLLM = {
    ParserKind.TOOLS: _releases(
        v0_10_0="deepseekv3 deepseekv32 deepseekv4 glm45 glm47 glm5 kimi_k2 qwen25 qwen3_coder"
    ),
    ParserKind.REASONING: _releases(
        v0_10_0="deepseek-r1 deepseek-v3 deepseek-v4 glm45 glm47 glm5 kimi kimi_k25 qwen3 qwen3-thinking qwen35 "
        "qwen35-thinking step3"
    ),
}
_MINDIE = {
    ParserKind.TOOLS: _releases(v2_3_0="deepseek_v31"),
    ParserKind.REASONING: _releases(v2_3_0="on"),
}
#: Engine → kind → parser → its first release (``min_version``). The oldest is the oldest that the plug-in accepts:
#: the parser may be older. vLLM Ascend has the parsers of the vLLM of its version.
MIN_VERSIONS: Mapping[str, Mapping[ParserKind, Mapping[str, str]]] = {
    "vllm": _VLLM,
    "sglang": _SGLANG,
    "xllm": _XLLM,
    "mindie": _MINDIE,
}


class ParserNames(NamedTuple):
    """Names of parsers of one engine; empty where it has none."""

    tools: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Models with the same format of tool calls and of reasoning."""

    #: The whole architecture, as a regular expression.
    architecture: str
    _: KW_ONLY
    #: What the chat template contains, each a regular expression; empty where the architecture alone decides.
    template: tuple[str, ...] = ()
    #: What it does not contain.
    template_without: tuple[str, ...] = ()
    #: Part of the key of the catalog entry, as a regular expression; decides where the template is not known.
    catalog: str = ""
    #: Values in ``config.json`` that other models of the architecture do not have.
    config: Mapping[str, Any] = field(default_factory=dict)
    #: Parsers of tool calls and of reasoning; empty where the engine has none.
    vllm: tuple[str, str] = ("", "")
    sglang: tuple[str, str] = ("", "")
    xllm: tuple[str, str] = ("", "")
    mindie: tuple[str, str] = ("", "")
    #: The models reason in every answer, so an empty parser of reasoning means that of the family.
    always_reasons: bool = False

    def may_include(self, model: ModelFacts) -> bool:
        """Whether architecture and configuration allow it."""
        return bool(re.fullmatch(self.architecture, model.architecture)) and all(
            model.config.get(name) == value for name, value in self.config.items()
        )

    def includes(self, model: ModelFacts) -> bool:
        """Whether a model that it may include is of the family."""
        if not self.template:
            return True
        if model.chat_template:
            return all(re.search(each, model.chat_template) for each in self.template) and not any(
                re.search(each, model.chat_template) for each in self.template_without
            )
        return bool(self.catalog) and bool(re.search(self.catalog, model.catalog_key))


#: How templates write a call: JSON in tags, or one tag a parameter.
_JSON_CALL, _XML_CALL = "<tool_call>", "<function="
_DEEPSEEK_CALL, _DEEPSEEK_JSON = "<｜tool▁calls▁begin｜>", "```json"
_THINK = "<think>"
_QWEN2 = r"Qwen2\w*For(CausalLM|ConditionalGeneration)"
_QWEN3 = r"Qwen3\w*For(CausalLM|ConditionalGeneration)"
_QWEN3_XML = r"Qwen3(Moe|Next)?ForCausalLM"
_DEEPSEEK_V3 = "DeepseekV3ForCausalLM"

#: The first that includes a model counts.
FAMILIES = (
    # Qwen2.5 and Llama 3 that DeepSeek-R1 taught: its prompt, and no tool calls of either.
    ModelFamily(
        r"(Qwen[23]|Llama)ForCausalLM",
        template=("<｜Assistant｜>",),
        catalog=r"^deepseek-r1-distill",
        vllm=("", "deepseek_r1"),
        sglang=("", "deepseek-r1"),
        xllm=("", "deepseek-r1"),
        always_reasons=True,
    ),
    ModelFamily(
        r"Qwen3_5\w*For(CausalLM|ConditionalGeneration)",
        vllm=("qwen3_coder", "qwen3"),
        sglang=("qwen3_coder", "qwen3"),
        xllm=("qwen3_coder", "qwen3"),
    ),
    # Qwen3-Coder does not reason: a parser that expects reasoning would take the whole answer for it.
    ModelFamily(
        _QWEN3_XML,
        template=(_XML_CALL,),
        template_without=(_THINK,),
        catalog=r"^qwen3-coder",
        vllm=("qwen3_coder", ""),
        sglang=("qwen3_coder", ""),
        xllm=("qwen3_coder", ""),
    ),
    ModelFamily(
        _QWEN3_XML,
        template=(_XML_CALL, _THINK),
        vllm=("qwen3_coder", "qwen3"),
        sglang=("qwen3_coder", "qwen3"),
        xllm=("qwen3_coder", "qwen3"),
    ),
    ModelFamily(
        _QWEN3,
        template=(_JSON_CALL,),
        template_without=(_XML_CALL, _THINK),
        catalog=r"^qwen3-(next|vl)\b.*instruct",
        vllm=("hermes", ""),
        sglang=("qwen25", ""),
        xllm=("qwen25", ""),
    ),
    ModelFamily(
        _QWEN3,
        template=(_JSON_CALL, _THINK),
        template_without=(_XML_CALL,),
        catalog=r"^qwen3-(\d|vl|next)",
        vllm=("hermes", "qwen3"),
        sglang=("qwen25", "qwen3"),
        xllm=("qwen25", "qwen3"),
        mindie=("", "on"),
    ),
    # QwQ: vLLM documents hermes and deepseek_r1.
    ModelFamily(
        "Qwen2ForCausalLM",
        template=(_JSON_CALL, _THINK),
        catalog=r"^qwq",
        vllm=("hermes", "deepseek_r1"),
        sglang=("qwen25", "deepseek-r1"),
        xllm=("qwen25", "deepseek-r1"),
        always_reasons=True,
    ),
    # The templates of Qwen1.5 and Qwen2 have no tool calls.
    ModelFamily(
        _QWEN2,
        template=(_JSON_CALL,),
        template_without=(_XML_CALL, _THINK),
        catalog=r"^qwen2\.5-(\d|coder)",
        vllm=("hermes", ""),
        sglang=("qwen25", ""),
        xllm=("qwen25", ""),
    ),
    ModelFamily(
        r"DeepseekV41\w*ForCausalLM",
        vllm=("deepseek_v41", "deepseek_v41"),
        sglang=("deepseekv41", "deepseek-v41"),
    ),
    ModelFamily(
        r"DeepseekV4\w*For(CausalLM|ConditionalGeneration)",
        vllm=("deepseek_v4", "deepseek_v4"),
        sglang=("deepseekv4", "deepseek-v4"),
        xllm=("deepseekv4", "deepseek-v4"),
    ),
    ModelFamily(
        r"DeepseekV32ForCausalLM",
        vllm=("deepseek_v32", "deepseek_v3"),
        sglang=("deepseekv32", "deepseek-v3"),
        xllm=("deepseekv32", "deepseek-v3"),
        mindie=("", "on"),
    ),
    # Kimi K2 has the architecture of DeepSeek-V3 and a type of its own.
    ModelFamily(
        _DEEPSEEK_V3,
        config={"model_type": "kimi_k2"},
        vllm=("kimi_k2", "kimi_k2"),
        sglang=("kimi_k2", "kimi_k2"),
        xllm=("kimi_k2", "kimi"),
    ),
    ModelFamily(
        rf"{_DEEPSEEK_V3}|KimiLinearForCausalLM",
        template=(r"<\|tool_calls_section_begin\|>",),
        catalog=r"^kimi-k2",
        vllm=("kimi_k2", "kimi_k2"),
        sglang=("kimi_k2", "kimi_k2"),
        xllm=("kimi_k2", "kimi"),
    ),
    ModelFamily(
        r"KimiK25ForConditionalGeneration",
        vllm=("kimi_k2", "kimi_k2"),
        sglang=("kimi_k2", "kimi_k2"),
        xllm=("kimi_k2", "kimi_k25"),
    ),
    ModelFamily(r"KimiK3\w*", vllm=("kimi_k3", "kimi_k3"), sglang=("kimi_k3", "kimi_k3")),
    ModelFamily(
        _DEEPSEEK_V3,
        template=(_DEEPSEEK_CALL,),
        template_without=(_DEEPSEEK_JSON,),
        catalog=r"^deepseek-v3\.1",
        vllm=("deepseek_v31", "deepseek_v3"),
        sglang=("deepseekv31", "deepseek-v3"),
        mindie=("deepseek_v31", "on"),
    ),
    ModelFamily(
        _DEEPSEEK_V3,
        template=(_DEEPSEEK_CALL, _DEEPSEEK_JSON, "</think>"),
        catalog=r"^deepseek-r1$",
        vllm=("deepseek_v3", "deepseek_r1"),
        sglang=("deepseekv3", "deepseek-r1"),
        xllm=("deepseekv3", "deepseek-r1"),
        mindie=("", "on"),
        always_reasons=True,
    ),
    ModelFamily(
        _DEEPSEEK_V3,
        template=(_DEEPSEEK_CALL, _DEEPSEEK_JSON),
        catalog=r"^deepseek-v3$",
        vllm=("deepseek_v3", ""),
        sglang=("deepseekv3", ""),
        xllm=("deepseekv3", ""),
    ),
    # From GLM-4.7 on the name of the function follows the tag on the same line. GLM-4-0414 (``Glm4ForCausalLM``)
    # has a format of its own, for which neither engine has a parser.
    ModelFamily(
        r"Glm4Moe(Lite)?ForCausalLM",
        template=("<arg_key>", r"['\"]<tool_call>['\"]\s*[+~]"),
        catalog=r"^glm-4\.7",
        vllm=("glm47", "glm45"),
        sglang=("glm47", "glm45"),
        xllm=("glm47", "glm47"),
    ),
    ModelFamily(
        r"Glm4v?MoeFor(CausalLM|ConditionalGeneration)",
        template=("<arg_key>",),
        catalog=r"^glm-4\.[56]",
        vllm=("glm45", "glm45"),
        sglang=("glm45", "glm45"),
        xllm=("glm45", "glm45"),
    ),
    ModelFamily(
        r"GlmMoeDsaForCausalLM|Glm5\w+",
        vllm=("glm47", "glm45"),
        sglang=("glm47", "glm45"),
        xllm=("glm5", "glm5"),
    ),
    ModelFamily(
        r"MiniMaxM2ForCausalLM",
        vllm=("minimax_m2", "minimax_m2"),
        sglang=("minimax-m2", "minimax"),
        always_reasons=True,
    ),
    ModelFamily(
        r"MiniMaxM3\w*For(CausalLM|ConditionalGeneration)",
        vllm=("minimax_m3", "minimax_m3"),
        sglang=("minimax-m3", "minimax-m3"),
    ),
    ModelFamily(
        r"GptOssForCausalLM",
        vllm=("openai", "openai_gptoss"),
        sglang=("gpt-oss", "gpt-oss"),
        always_reasons=True,
    ),
    # The template of Llama 4 asks for calls of Python; one that asks for JSON is a fine-tuned model's.
    ModelFamily(
        r"Llama4\w*",
        template=(r"\"parameters\"",),
        template_without=(r"func_name1\(",),
        vllm=("llama4_json", ""),
    ),
    ModelFamily(r"Llama4\w*", vllm=("llama4_pythonic", ""), sglang=("pythonic", "")),
    # Llama 3.1 and later; Llama 3, Llama 2 and Yi have the architecture and no tool calls.
    ModelFamily(
        r"LlamaForCausalLM",
        template=("Environment: ipython",),
        catalog=r"^llama-3\.[1-9]",
        vllm=("llama3_json", ""),
        sglang=("llama3", ""),
    ),
    # Models that were fine-tuned to the format of Hermes 2 Pro.
    ModelFamily(
        r"(Llama|Mistral)ForCausalLM",
        template=(_JSON_CALL, r"<\|im_start\|>"),
        template_without=(_XML_CALL, "<arg_key>", _THINK),
        vllm=("hermes", ""),
        sglang=("hermes", ""),
    ),
    # Of Mistral only Magistral reasons.
    ModelFamily(
        r"Mi(s|x)tral\w*For\w+|Ministral3\w*",
        template=(r"\[TOOL_CALLS\]", r"\[THINK\]"),
        vllm=("mistral", "mistral"),
        sglang=("mistral", "mistral"),
        always_reasons=True,
    ),
    ModelFamily(
        r"Mi(s|x)tral\w*For\w+|Ministral3\w*",
        template=(r"\[TOOL_CALLS\]",),
        catalog=r"^(mistral-7b-instruct-v0\.3|mistral-nemo|mistral-small|mixtral-8x22b)",
        vllm=("mistral", ""),
        sglang=("mistral", ""),
    ),
    ModelFamily(
        r"Gemma3ForCausalLM", template=("<start_function_call>",), vllm=("functiongemma", "")
    ),
    ModelFamily(r"Gemma4\w*", vllm=("gemma4", "gemma4"), sglang=("gemma4", "gemma4")),
    # ERNIE 4.5 calls tools in its reasoning models only.
    ModelFamily(
        r"Ernie4_5\w*ForCausalLM", template=(_JSON_CALL, _THINK), vllm=("ernie45", "ernie45")
    ),
    ModelFamily(
        r"InternLM2ForCausalLM",
        template=(r"<\|plugin\|>",),
        catalog=r"^internlm2\.5",
        vllm=("internlm", ""),
    ),
    ModelFamily(r"InternS1\w*", sglang=("interns1", "interns1")),
    ModelFamily(r"HunYuanMoEV1ForCausalLM", vllm=("hunyuan_a13b", "hunyuan_a13b")),
    # SGLang's ``hunyuan`` reads the tokens of Hunyuan 3, not those of Hunyuan A13B.
    ModelFamily(r"HYV3ForCausalLM", vllm=("hy_v3", "hy_v3"), sglang=("hunyuan", "hunyuan")),
    ModelFamily(r"HYV4ForCausalLM", vllm=("hy_v4", "hy_v4")),
    # Phi-4-mini has the architecture of Phi-3 and a vocabulary of its own.
    ModelFamily(r"Phi3ForCausalLM", config={"vocab_size": 200_064}, vllm=("phi4_mini_json", "")),
    ModelFamily(
        r"Granite\w*ForCausalLM",
        template=(r"<\|tool_call\|>",),
        vllm=("granite", "granite"),
    ),
    ModelFamily(
        r"Granite\w*ForCausalLM",
        template=(_JSON_CALL,),
        template_without=(_XML_CALL,),
        catalog=r"^granite-4",
        vllm=("granite4", ""),
    ),
    ModelFamily(r"SeedOssForCausalLM", vllm=("seed_oss", "seed_oss")),
    ModelFamily(r"MiMo(V2(Flash)?)?ForCausalLM", vllm=("mimo", "mimo"), sglang=("mimo", "mimo")),
    ModelFamily(r"Olmo3ForCausalLM", vllm=("olmo3", "olmo3")),
    ModelFamily(r"Step5\w*", vllm=("step5", "step5")),
    ModelFamily(
        r"Step3p[57]\w*",
        vllm=("step3p5", "step3p5"),
        sglang=("step3p5", "step3p5"),
    ),
    ModelFamily(
        r"Step3(VL|Text)\w*",
        vllm=("step3", "step3"),
        sglang=("step3", "step3"),
        xllm=("", "step3"),
    ),
    ModelFamily(r"Lfm2\w*", vllm=("lfm2", ""), sglang=("lfm2", "")),
    ModelFamily(
        r"NemotronH\w*",
        template=(_XML_CALL, _THINK),
        vllm=("qwen3_coder", "nemotron_v3"),
        sglang=("qwen3_coder", "nemotron_3"),
    ),
    ModelFamily(r"LongcatFlash\w*", vllm=("longcat", "")),
    ModelFamily(r"JambaForCausalLM", vllm=("jamba", "")),
    ModelFamily(r"ApertusForCausalLM", vllm=("apertus", ""), sglang=("apertus2509", "apertus2509")),
    ModelFamily(
        r"LagunaForCausalLM",
        vllm=("poolside_v1", "poolside_v1"),
        sglang=("poolside_v1", "poolside_v1"),
    ),
    ModelFamily(r"InklingFor\w+", vllm=("inkling", "inkling"), sglang=("inkling", "inkling")),
    ModelFamily(r"BailingMoeV3\w*", vllm=("ling3", "ling3"), sglang=("ling3", "ling3")),
    ModelFamily(
        r"K2HorizonForCausalLM",
        vllm=("k2_horizon", "k2_horizon"),
        sglang=("k2_horizon", "k2_horizon"),
    ),
)


def model_family(model: ModelFacts) -> ModelFamily | None:
    """The family of a model; None if its files and the catalog do not name one."""
    candidates = (each for each in FAMILIES if each.may_include(model))
    return next((each for each in candidates if each.includes(model)), None)


def parser_names(
    spec: Mapping[str, Any], *, model: ModelFacts | None, engine: str, version: str
) -> ParserNames:
    """The parsers that the engine is started with: those of the spec, or those of the model's family.

    A parser of the family that the version does not have is left out, because the engine would not start. A spec
    that needs one is refused before (``parser_findings``), so this concerns earlier deployments only.

    :param engine: a key of ``MIN_VERSIONS``.
    """
    wanted = _wanted_names(spec, model=model, engine=engine)
    return ParserNames(
        *(
            name
            if spec[kind] not in (None, AUTO)
            or not _first_release_after(name, kind, engine, version)
            else ""
            for kind, name in zip(ParserKind, wanted, strict=True)
        )
    )


def parser_findings(
    spec: Mapping[str, Any], *, model: ModelFacts | None, engine: str, version: str, title: str
) -> Iterator[FieldFinding]:
    """Parsers of a complete spec that a later version of the engine has, but not this one."""
    wanted = _wanted_names(spec, model=model, engine=engine)
    for kind, name in zip(ParserKind, wanted, strict=True):
        if not (first := _first_release_after(name, kind, engine, version)):
            continue
        yield field_finding(
            kind,
            "engine.parser.version_too_old",
            "{field} is {name}, which {engine} has since version {first}, and the image has "
            "{version}: set engine_version to {first} or later, or change {field}",
            field=kind,
            name=repr(name),
            engine=title,
            first=first,
            version=version,
        )


def _wanted_names(spec: Mapping[str, Any], *, model: ModelFacts | None, engine: str) -> ParserNames:
    family = model_family(model) if model is not None else None
    known = ParserNames(*getattr(family, engine)) if family is not None else ParserNames()
    tools, reasoning = spec[ParserKind.TOOLS], spec[ParserKind.REASONING]
    of_family = reasoning == AUTO or (
        not reasoning and family is not None and family.always_reasons
    )
    return ParserNames(
        tools=known.tools if tools is None else "" if tools == OFF else tools,
        reasoning=known.reasoning if of_family else "" if reasoning in (None, OFF) else reasoning,
    )


def _first_release_after(name: str, kind: ParserKind, engine: str, version: str) -> str:
    """The first release with the parser if it is later than the version; empty if it is not, or is not known."""
    first = MIN_VERSIONS[engine][kind].get(name, "")
    return first if first and Version(version) < Version(first) else ""
