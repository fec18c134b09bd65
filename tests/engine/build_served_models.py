"""Tiny models of every kind that the product's server has, with what their libraries compute for them.

Run by the engine's Python: ``build_served_models.py FOLDER [KIND …]``. The text model is trained until it knows
one answer, a call of a tool, by heart; all others have random weights.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from diffusers import (
    AutoencoderKL,
    LatentConsistencyModelPipeline,
    LCMScheduler,
    UNet2DConditionModel,
)
from PIL import Image
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import BertWordPieceTokenizer, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTokenizer,
    CLIPVisionConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperProcessor,
    WhisperTokenizer,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from ninefold_runtime.samples import tiny_models

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 8}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]
MESSAGES = [{"role": "user", "content": "天气？"}]
ANSWER = 'Hello.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "西宁"}}\n</tool_call>'
TEMPLATE = (
    "{% if tools %}<|system|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for message in messages %}{{ '<|' + message.role.replace('tool', 'user') + '|>' }}"
    "{% if message.content == 'broken' %}{{ 1 + message.content }}{% endif %}"
    "{{ message.content }}"
    "{% for call in message.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}"
    "{{ '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TEXTS = ["the quick brown fox", "a lazy dog", "what is the weather today in the city"]
SCORE_TEMPLATE = (
    "<|user|>{{ (messages | selectattr('role', 'eq', 'query') | first).content }}"
    " {{ (messages | selectattr('role', 'eq', 'document') | first).content }}<|end|><|assistant|>"
)
SPEECH = " hello world"
QUERY = "weather today"
PROMPT = "请把下面的地址拆分：青海省西宁市 lazy dog"


def _learn(model: Any, *, lr: float, **example: Any) -> None:
    """Train the model until it knows the example by heart."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    loss = torch.tensor(torch.inf)
    while loss > 0.05:
        loss = model(**example).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def build_text(folder: Path) -> dict[str, Any]:
    tiny_models.build_model("ninefold-tiny-qwen2", folder=folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    prompt = tokenizer.apply_chat_template(
        MESSAGES, tools=TOOLS, add_generation_prompt=True, return_dict=False
    )
    answer = [*tokenizer.encode(ANSWER), tokenizer.eos_token_id]
    tokens = torch.tensor([prompt + answer])
    labels = torch.tensor([[-100] * len(prompt) + answer])
    _learn(model, lr=3e-3, input_ids=tokens, labels=labels)
    model.eval().save_pretrained(folder)
    prompt_tokens = tokenizer.encode(PROMPT)
    with torch.inference_mode():
        logprobs = torch.log_softmax(model(torch.tensor([prompt_tokens])).logits[0], dim=-1)
    best = logprobs.max(dim=-1).values.tolist()
    return {
        "tools": TOOLS,
        "messages": MESSAGES,
        "answer": ANSWER,
        "prompt": PROMPT,
        "tokens": prompt_tokens,
        "logprobs": [float(logprobs[at, token]) for at, token in enumerate(prompt_tokens[1:])],
        "best": best[:-1],
    }


def _save_encoder_tokenizer(folder: Path) -> None:
    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(TEXTS, vocab_size=200, show_progress=False)
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer,
        model_max_length=48,
        **{f"{name}_token": token for name, token in special.items()},
    )
    tokenizer.save_pretrained(folder)


def _encoder_config(**fields: Any) -> Any:
    return BertConfig(
        vocab_size=200,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=48,
        initializer_range=0.3,
        **fields,
    )


def build_embedding(folder: Path) -> dict[str, Any]:
    encoder = folder.with_name("encoder")
    _save_encoder_tokenizer(encoder)
    BertModel(_encoder_config()).save_pretrained(encoder)
    transformer = Transformer(str(encoder))
    modules = [transformer, Pooling(32, pooling_mode="mean"), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu")
    model.save(str(folder))
    return {
        "texts": TEXTS,
        "vectors": model.encode(TEXTS).tolist(),
        "tokens": model.tokenizer(TEXTS)["input_ids"],
    }


def build_reranking(folder: Path) -> dict[str, Any]:
    _save_encoder_tokenizer(folder)
    BertForSequenceClassification(_encoder_config(num_labels=1)).save_pretrained(folder)
    ranked = CrossEncoder(str(folder), device="cpu").rank(QUERY, TEXTS)
    return {
        "query": QUERY,
        "documents": TEXTS,
        "order": [each["corpus_id"] for each in ranked],
        "scores": [float(each["score"]) for each in ranked],
    }


def build_yes_or_no(folder: Path) -> dict[str, Any]:
    """A causal language model that says yes or no, in the form of Qwen3-Reranker."""
    causal = folder.with_name("causal")
    tiny_models.build_model("ninefold-tiny-qwen2", folder=causal)
    tokenizer = AutoTokenizer.from_pretrained(causal)
    tokenizer.add_tokens(["yes", "no"])
    tokenizer.chat_template = SCORE_TEMPLATE
    tokenizer.save_pretrained(causal)
    model = AutoModelForCausalLM.from_pretrained(causal)
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained(causal)
    reranker = CrossEncoder(str(causal), device="cpu")
    reranker.save(str(folder))
    ranked = reranker.rank(QUERY, TEXTS)
    return {
        "query": QUERY,
        "documents": TEXTS,
        "order": [each["corpus_id"] for each in ranked],
        "scores": [float(each["score"]) for each in ranked],
    }


def build_transcription(folder: Path) -> dict[str, Any]:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = WhisperTokenizer(
        vocab={letter: number for number, letter in enumerate([*letters, "<|endoftext|>"])},
        merges=[],
    )
    times = [f"<|{number * 0.02:.2f}|>" for number in range(1501)]
    special = ["startoftranscript", "en", "zh", "translate", "transcribe", "startoflm"]
    special += ["startofprev", "nospeech", "notimestamps"]
    tokenizer.add_special_tokens({"additional_special_tokens": [f"<|{name}|>" for name in special]})
    tokenizer.add_tokens(times)
    number = tokenizer.convert_tokens_to_ids
    model = WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=len(tokenizer),
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            max_target_positions=64,
            num_mel_bins=16,
            decoder_start_token_id=number("<|startoftranscript|>"),
            pad_token_id=number("<|endoftext|>"),
            bos_token_id=number("<|endoftext|>"),
            eos_token_id=number("<|endoftext|>"),
            suppress_tokens=None,
            begin_suppress_tokens=None,
        )
    ).eval()
    settings = model.generation_config
    # Otherwise the loader makes another one of the model's configuration.
    settings._from_model_config = False
    settings.no_timestamps_token_id = number("<|notimestamps|>")
    settings.lang_to_id = {f"<|{code}|>": number(f"<|{code}|>") for code in ("en", "zh")}
    settings.task_to_id = {name: number(f"<|{name}|>") for name in ("translate", "transcribe")}
    settings.is_multilingual = True
    settings.max_length = 48
    settings.prev_sot_token_id = number("<|startofprev|>")
    features = WhisperFeatureExtractor(feature_size=16)
    WhisperProcessor(features, tokenizer).save_pretrained(folder)

    rate = 16_000
    tone = 0.3 * np.sin(np.arange(2 * rate) * 2 * np.pi * 440 / rate)
    soundfile.write(folder.with_name("tone.wav"), tone, rate, subtype="FLOAT")
    # The same at another rate and in two channels.
    double = 0.3 * np.sin(np.arange(4 * rate) * 2 * np.pi * 440 / (2 * rate))
    soundfile.write(folder.with_name("double.flac"), np.stack([double, double], axis=1), 2 * rate)
    soundfile.write(folder.with_name("long.wav"), np.tile(tone, 20), rate)
    audio = features(tone, sampling_rate=rate, return_tensors="pt").input_features
    begin, end = number("<|0.00|>"), number("<|2.00|>")
    spoken = tokenizer.encode(SPEECH, add_special_tokens=False)
    answer = [number("<|en|>"), number("<|transcribe|>"), begin, *spoken, end]
    _learn(
        model,
        lr=1e-2,
        input_features=audio,
        labels=torch.tensor([[*answer, tokenizer.eos_token_id]]),
    )
    model.eval().save_pretrained(folder)
    return {"text": SPEECH.strip(), "begin": 0.0, "end": 2.0}


def build_images(folder: Path) -> dict[str, Any]:
    tokens = ["<|startoftext|>", "<|endoftext|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokens += [f"{token}</w>" for token in tokens[2:]]
    tokenizer = CLIPTokenizer(
        vocab={token: number for number, token in enumerate(tokens)}, merges=[], model_max_length=16
    )
    pipe = LatentConsistencyModelPipeline(
        vae=AutoencoderKL(
            block_out_channels=(8, 16),
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            norm_num_groups=4,
            sample_size=32,
        ),
        text_encoder=CLIPTextModel(
            CLIPTextConfig(
                vocab_size=len(tokens),
                hidden_size=16,
                intermediate_size=32,
                num_hidden_layers=1,
                num_attention_heads=2,
                max_position_embeddings=16,
                bos_token_id=0,
                eos_token_id=1,
            )
        ),
        tokenizer=tokenizer,
        unet=UNet2DConditionModel(
            block_out_channels=(8, 16),
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            layers_per_block=1,
            cross_attention_dim=16,
            attention_head_dim=4,
            norm_num_groups=4,
            sample_size=32,
            time_cond_proj_dim=8,
        ),
        # Four steps by default.
        scheduler=LCMScheduler(steps_offset=1, clip_sample=False),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipe.save_pretrained(folder)
    image = pipe("a red cube", width=32, height=48, generator=torch.Generator().manual_seed(5))
    return {"prompt": "a red cube", "pixels": np.asarray(image.images[0]).tolist()}


#: Content is a text, or a list of parts where there are images.
VISION_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message.role + '|>' }}"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}"
    "{% if part.text == 'broken' %}{{ 1 + part.text }}{% endif %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}{{ '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
QUESTION = "what is this?"
#: What the vision-language model answers for an image of one colour.
COLOURS = {"red": (255, 0, 0), "blue": (0, 0, 255)}


def build_vision(folder: Path) -> dict[str, Any]:
    tiny_models.build_model("ninefold-tiny-qwen2", folder=folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    text = AutoModelForCausalLM.from_pretrained(folder).config
    text.vocab_size = len(tokenizer)
    model = LlavaForConditionalGeneration(
        LlavaConfig(
            vision_config=CLIPVisionConfig(
                hidden_size=16,
                intermediate_size=32,
                num_hidden_layers=1,
                num_attention_heads=2,
                image_size=16,
                patch_size=8,
            ),
            text_config=text,
            image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
            image_seq_length=4,
            vision_feature_layer=-1,
        )
    )
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(
            size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}
        ),
        tokenizer=tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=VISION_TEMPLATE,
    )
    parts = [{"type": "image"}, {"type": "text", "text": QUESTION}]
    prompt = processor.apply_chat_template(
        [{"role": "user", "content": parts}], add_generation_prompt=True, tokenize=False
    )
    pictures = {name: Image.new("RGB", (40, 30), colour) for name, colour in COLOURS.items()}
    features = processor(
        text=[f"{prompt}{name}{tokenizer.eos_token}" for name in COLOURS],
        images=list(pictures.values()),
        return_tensors="pt",
        padding=True,
        padding_side="right",
    )
    known = len(processor(text=[prompt], images=[pictures["red"]])["input_ids"][0])
    labels = features["input_ids"].masked_fill(features["attention_mask"] == 0, -100)
    labels[:, :known] = -100
    _learn(model, lr=3e-3, **features, labels=labels)
    model.eval().save_pretrained(folder)
    processor.save_pretrained(folder)

    def data_url(picture: Any, kind: str) -> str:
        file = io.BytesIO()
        picture.save(file, format=kind)
        return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"

    return {
        "question": QUESTION,
        "images": {name: data_url(picture, "png") for name, picture in pictures.items()},
        "jpeg": data_url(pictures["blue"], "jpeg"),
        "prompt_tokens": known,
    }


BUILDERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "text": build_text,
    "embedding": build_embedding,
    "reranking": build_reranking,
    "yes-or-no": build_yes_or_no,
    "vision": build_vision,
    "transcription": build_transcription,
    "images": build_images,
}


def main(out: Path, names: list[str]) -> None:
    torch.manual_seed(7)
    expected = {name: BUILDERS[name](out / name) for name in names or BUILDERS}
    (out / "expected.json").write_text(json.dumps(expected), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
