"""Parsers of tool calls and of reasoning, by family of models.

An engine finds tool calls in the text of a model by a parser that fits the model's chat template. The names
are those of vLLM (``vllm/tool_parsers``, ``vllm/reasoning``; 0.23.0 and 0.33.0) and SGLang
(``srt/function_call``, ``srt/parser``; 0.5.14 and 0.5.23); a test compares them with these packages. Those of
xLLM are in ``xllm/function_call`` and ``xllm/parser`` at 87e8d6ed (0.10.0). MindIE takes the parser of the type of
the model unless another is named, and separates reasoning where it is told to. Which family has which parser
follows the documentation of the engines and was not run on hardware.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.ports.engines import ModelFacts

AUTO, OFF = "auto", "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserNames:
    """Names of parsers of one engine; empty where it has none."""

    tools: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFamily:
    """Models with the same format of tool calls."""

    #: The whole architecture, as a regular expression.
    architecture: str
    #: Part of the model's name where the architecture alone does not tell; in lower case.
    name: str = ""
    vllm: ParserNames = ParserNames()
    sglang: ParserNames = ParserNames()
    xllm: ParserNames = ParserNames()
    mindie: ParserNames = ParserNames()

    def includes(self, model: ModelFacts) -> bool:
        return bool(
            re.fullmatch(self.architecture, model.architecture)
            and re.search(self.name, model.name.lower())
        )


def _family(
    architecture: str,
    *,
    vllm: tuple[str, str] = ("", ""),
    sglang: tuple[str, str] = ("", ""),
    xllm: tuple[str, str] = ("", ""),
    mindie: tuple[str, str] = ("", ""),
    name: str = "",
) -> ModelFamily:
    return ModelFamily(
        architecture=architecture,
        name=name,
        vllm=ParserNames(tools=vllm[0], reasoning=vllm[1]),
        sglang=ParserNames(tools=sglang[0], reasoning=sglang[1]),
        xllm=ParserNames(tools=xllm[0], reasoning=xllm[1]),
        mindie=ParserNames(tools=mindie[0], reasoning=mindie[1]),
    )


#: The first that includes a model counts.
FAMILIES = (
    _family(
        r"Qwen3_5\w*For(CausalLM|ConditionalGeneration)",
        vllm=("qwen3_coder", "qwen3"),
        sglang=("qwen3_coder", "qwen3"),
        xllm=("qwen3_coder", "qwen3"),
    ),
    _family(
        r"Qwen3\w*ForCausalLM",
        name="coder",
        vllm=("qwen3_coder", "qwen3"),
        sglang=("qwen3_coder", "qwen3"),
        xllm=("qwen3_coder", "qwen3"),
    ),
    _family(
        r"Qwen3\w*For(CausalLM|ConditionalGeneration)",
        vllm=("hermes", "qwen3"),
        sglang=("qwen25", "qwen3"),
        xllm=("qwen25", "qwen3"),
        mindie=("", "on"),
    ),
    _family(
        r"Qwen2\w*For(CausalLM|ConditionalGeneration)",
        vllm=("hermes", ""),
        sglang=("qwen25", ""),
        xllm=("qwen25", ""),
    ),
    _family(
        r"DeepseekV4\w*ForCausalLM",
        vllm=("deepseek_v4", "deepseek_v4"),
        sglang=("deepseekv4", "deepseek-v4"),
        xllm=("deepseekv4", "deepseek-v4"),
    ),
    _family(
        r"DeepseekV32ForCausalLM",
        vllm=("deepseek_v32", "deepseek_v3"),
        sglang=("deepseekv32", "deepseek-v3"),
        xllm=("deepseekv32", "deepseek-v3"),
        mindie=("", "on"),
    ),
    _family(
        r"DeepseekV3ForCausalLM",
        name=r"v3\.1",
        vllm=("deepseek_v31", "deepseek_v3"),
        sglang=("deepseekv31", "deepseek-v3"),
        mindie=("deepseek_v31", "on"),
    ),
    _family(
        r"DeepseekV3ForCausalLM",
        name=r"kimi",
        vllm=("kimi_k2", "kimi_k2"),
        sglang=("kimi_k2", "kimi_k2"),
        xllm=("kimi_k2", "kimi"),
    ),
    _family(
        r"DeepseekV3ForCausalLM",
        vllm=("deepseek_v3", "deepseek_r1"),
        sglang=("deepseekv3", "deepseek-r1"),
        xllm=("deepseekv3", "deepseek-r1"),
        mindie=("", "on"),
    ),
    _family(
        r"Glm4Moe\w*ForCausalLM",
        name=r"4\.7",
        vllm=("glm47", "glm45"),
        sglang=("glm47", "glm45"),
        xllm=("glm47", "glm47"),
    ),
    _family(
        r"Glm4(Moe)?\w*ForCausalLM",
        vllm=("glm45", "glm45"),
        sglang=("glm45", "glm45"),
        xllm=("glm45", "glm45"),
    ),
    _family(r"GlmMoeDsaForCausalLM", xllm=("glm5", "glm5")),
    _family(
        r"MiniMaxM2ForCausalLM",
        vllm=("minimax_m2", "minimax_m2"),
        sglang=("minimax-m2", "minimax"),
    ),
    _family(r"GptOssForCausalLM", vllm=("openai", "openai_gptoss"), sglang=("gpt-oss", "gpt-oss")),
    _family(r"Llama4\w*", vllm=("llama4_pythonic", ""), sglang=("pythonic", "")),
    _family(r"LlamaForCausalLM", name=r"llama-?3", vllm=("llama3_json", ""), sglang=("llama3", "")),
    _family(r"Mi(s|x)tral\w*For\w+", vllm=("mistral", "mistral"), sglang=("mistral", "mistral")),
    _family(r"Gemma4\w*", vllm=("gemma4", "gemma4"), sglang=("gemma4", "gemma4")),
    _family(r"Ernie4_5\w*ForCausalLM", vllm=("ernie45", "ernie45")),
    _family(r"InternLM[23]\w*", vllm=("internlm", "")),
    _family(r"InternS1\w*", sglang=("interns1", "interns1")),
    _family(
        r"HunYuan\w*ForCausalLM",
        vllm=("hunyuan_a13b", "hunyuan_a13b"),
        sglang=("hunyuan", "hunyuan"),
    ),
    _family(r"Phi4?3?ForCausalLM", name=r"phi-?4-mini", vllm=("phi4_mini_json", "")),
    _family(r"Granite\w*ForCausalLM", vllm=("granite", "granite")),
    _family(r"SeedOssForCausalLM", vllm=("seed_oss", "seed_oss")),
    _family(r"MiMo\w*ForCausalLM", vllm=("mimo", "mimo"), sglang=("mimo", "mimo")),
    _family(r"Olmo3ForCausalLM", vllm=("olmo3", "olmo3")),
    _family(
        r"Step3\w*",
        vllm=("step3", "step3"),
        sglang=("step3", "step3"),
        xllm=("", "step3"),
    ),
)


def parser_names(spec: Mapping[str, Any], *, model: ModelFacts | None, engine: str) -> ParserNames:
    """The parsers of a spec for an engine of ``ModelFamily``: named in it, or those of the model's family."""
    family = next((each for each in FAMILIES if model is not None and each.includes(model)), None)
    known = getattr(family, engine) if family is not None else ParserNames()
    tools, reasoning = spec["tool_call_parser"], spec["reasoning_parser"]
    return ParserNames(
        tools=known.tools if tools is None else "" if tools == OFF else tools,
        reasoning=known.reasoning if reasoning == AUTO else reasoning or "",
    )
