"""Text generation over transformers' ``generate``: one sequence at a time, token by token, and its LoRA adapters.

All adapters are in memory beside the model; one or none is applied at a time.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from llguidance import LLMatcher
from llguidance.hf import from_tokenizer
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    StoppingCriteriaList,
)

from ninefold_runtime import model_loading
from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.serving import model_kinds
from ninefold_runtime.serving.answer_parsing import AnswerParser, answer_parser
from ninefold_runtime.serving.generation_requests import Message, SamplingParameters
from ninefold_runtime.serving.image_inputs import ImageInput, decode_image
from ninefold_runtime.serving.operations import OperationContext, ServedModel
from ninefold_runtime.serving.request_fields import RequestRejected
from ninefold_runtime.serving.text_generation import (
    AdapterSelector,
    ChoiceFinished,
    Detokenizer,
    Event,
    GenerationFinished,
    GenerationRequest,
    StopScanner,
    TextDelta,
    TokenLogprob,
)
from ninefold_runtime.serving.text_operations import TextOperations

#: Positions of a prompt whose probabilities are computed at once: each has a row as wide as the vocabulary.
_PROMPT_CHUNK = 256


def load_text_generation(
    folder: Path,
    *,
    precision: str,
    context: OperationContext,
    adapters: Mapping[str, Path] = MappingProxyType({}),
) -> ServedModel:
    """:raises InvalidTaskInput: if the model or an adapter cannot be loaded."""
    tokenizer = model_loading.load_tokenizer(folder, require_chat_template=False)
    supports_image_input = model_kinds.is_vision_language(folder)
    model = model_loading.load_model(
        folder,
        precision=precision,
        auto_class=AutoModelForImageTextToText if supports_image_input else AutoModelForCausalLM,
    ).eval()
    positions = model_loading.context_length(folder)
    description = (
        f"{type(model).__name__} with {model.num_parameters():,} parameters, {positions} positions"
    )
    image_processor = None
    if supports_image_input:
        image_processor, reason = _load_image_processor(folder)
        description += f", text only: {reason}" if reason else ", reads images"
    select_adapter: AdapterSelector = _select_none
    if adapters:
        model, select_adapter = load_adapters(model, adapters)
        description += f", {len(adapters)} LoRA adapters"
    generator = TransformersGenerator(
        model=model,
        tokenizer=tokenizer,
        context_length=positions,
        select_adapter=select_adapter,
        image_processor=image_processor,
    )
    return ServedModel(
        operations=TextOperations(generator, context=context).routes(),
        description=description,
        context_length=positions,
    )


def _load_image_processor(folder: Path) -> tuple[Any, str]:
    """What makes tensors of a chat with images; or None and the reason why there is none."""
    try:
        processor = AutoProcessor.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        return None, str(error).strip().partition("\n")[0][:200]
    if getattr(processor, "image_processor", None) is None:
        return None, "the model has no processor of images"
    return processor, ""


def _select_none(_name: str | None) -> AbstractContextManager[None]:
    return nullcontext()


class TransformersGenerator:
    """Implements ``TextGenerator`` over transformers' ``generate``."""

    def __init__(
        self,
        *,
        model: Any,
        tokenizer: Any,
        context_length: int,
        select_adapter: AdapterSelector = _select_none,
        image_processor: Any = None,
    ) -> None:
        self._model = model
        self._image_processor = image_processor
        self._select_adapter = select_adapter
        self._tokenizer = tokenizer
        # A fast tokenizer must not be used by two threads at once; this one belongs to the worker.
        self._decoding_tokenizer = copy.deepcopy(tokenizer)
        self._context_length = context_length
        self._vocabulary = int(model.config.get_text_config().vocab_size)
        ends = model.generation_config.eos_token_id
        self._ends = [
            int(end)
            for end in (ends if isinstance(ends, list) else [ends, tokenizer.eos_token_id])
            if end is not None
        ]

    @property
    def context_length(self) -> int:
        return self._context_length

    def encode_chat(
        self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]]
    ) -> list[int]:
        if self._tokenizer.chat_template is None:
            raise RequestRejected(
                "this model has no chat template; use /v1/completions", param="messages"
            )
        if tools and "tools" not in self._tokenizer.get_chat_template(tools=list(tools)):
            raise RequestRejected("this model's chat template has no tools", param="tools")
        try:
            return model_loading.prompt_ids(self._tokenizer, messages, tools=tools)
        except InvalidTaskInput as refusal:
            raise RequestRejected(str(refusal), param="messages") from refusal

    def encode_images(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]],
        images: Sequence[ImageInput],
    ) -> tuple[list[int], Mapping[str, Any]]:
        processor = self._image_processor
        if processor is None:
            raise RequestRejected(
                "this model reads text only", param=images[0].at, code="unsupported_parameter"
            )
        pixels = [decode_image(image) for image in images]
        try:
            text = processor.apply_chat_template(
                list(messages),
                tools=list(tools) or None,
                add_generation_prompt=True,
                tokenize=False,
            )
            features = dict(processor(text=[text], images=pixels, return_tensors="pt"))
        except (*model_loading.TEMPLATE_ERRORS, IndexError) as error:
            raise RequestRejected(
                f"the model does not read these images: {error}"[:300], param="messages"
            ) from error
        tokens = [int(token) for token in features.pop("input_ids")[0]]
        del features["attention_mask"]
        return tokens, features

    def encode_text(self, text: str) -> list[int]:
        return [int(token) for token in self._tokenizer.encode(text)]

    def check_tokens(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            if not 0 <= token < self._vocabulary:
                raise RequestRejected(
                    f"prompt has the token {token}; this model's tokens are from 0 to "
                    f"{self._vocabulary - 1}",
                    param="prompt",
                )

    def check_grammar(self, grammar: str, *, param: str) -> None:
        failed, messages = LLMatcher.validate_grammar_with_warnings(
            LLMatcher.grammar_from_lark(grammar), self._grammar_tokenizer
        )
        if failed:
            # What follows is the grammar, which the client did not write.
            reason = messages[0].splitlines()[0][:300]
            raise RequestRejected(
                f"{param} has a JSON schema that is not supported: {reason}", param=param
            )

    def generate(
        self,
        request: GenerationRequest,
        emit: Callable[[Event], None],
        cancelled: threading.Event,
    ) -> None:
        if request.sampling.seed is not None:
            torch.manual_seed(request.sampling.seed)
        completion_tokens = 0
        with self._select_adapter(request.adapter), torch.inference_mode():
            for number, prompt in enumerate(request.prompts):
                echoed: tuple[TokenLogprob, ...] = ()
                if request.echo and request.logprobs is not None:
                    echoed = self._prompt_logprobs(prompt, alternatives=request.logprobs)
                for choice in range(request.choices):
                    if cancelled.is_set():
                        return
                    stream = _TokenStream(
                        request,
                        prompt,
                        generator=self,
                        index=number * request.choices + choice,
                        emit=emit,
                        cancelled=cancelled,
                    )
                    if request.echo:
                        stream.echo(echoed)
                    self._generate_choice(request, prompt, stream)
                    completion_tokens += stream.count
        emit(
            GenerationFinished(
                prompt_tokens=sum(len(prompt) for prompt in request.prompts),
                completion_tokens=completion_tokens,
            )
        )

    def _generate_choice(
        self, request: GenerationRequest, prompt: Sequence[int], stream: _TokenStream
    ) -> None:
        remaining = self._context_length - len(prompt)
        wanted = request.sampling.max_tokens
        limit = remaining if wanted is None else min(wanted, remaining)
        if limit > 0:
            processors: list[Any] = [stream.record_logits] if request.logprobs is not None else []
            if request.grammar is not None:
                processors.append(self._grammar_mask(request.grammar, prompt_length=len(prompt)))
            tokens = torch.tensor([list(prompt)], device=self._model.device)
            self._model.generate(
                input_ids=tokens,
                attention_mask=torch.ones_like(tokens),
                max_new_tokens=limit,
                streamer=stream,
                logits_processor=processors,
                stopping_criteria=StoppingCriteriaList([stream.must_stop]),
                pad_token_id=self._tokenizer.pad_token_id,
                eos_token_id=self._ends,
                **self._device_tensors(request.image_tensors),
                **_sampling_arguments(request.sampling, self._model.generation_config),
            )
        stream.finish(limit=limit)

    def _device_tensors(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """On the device of the model; pixels in its precision."""
        device, precision = self._model.device, self._model.dtype
        return {
            name: value.to(device, precision) if value.is_floating_point() else value.to(device)
            for name, value in tensors.items()
        }

    def _prompt_logprobs(
        self, prompt: Sequence[int], *, alternatives: int
    ) -> tuple[TokenLogprob, ...]:
        """Of each token of the prompt, given those before it."""
        found = [TokenLogprob(token=self.token_bytes(prompt[0]), logprob=None)]
        cache = None
        for begin in range(0, len(prompt) - 1, _PROMPT_CHUNK):
            end = min(begin + _PROMPT_CHUNK, len(prompt) - 1)
            tokens = torch.tensor([list(prompt[begin:end])], device=self._model.device)
            output = self._model(input_ids=tokens, past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            logprobs = torch.log_softmax(output.logits[0].float(), dim=-1)
            found += [
                self.token_logprob(row, token, alternatives=alternatives)
                for row, token in zip(logprobs, prompt[begin + 1 : end + 1], strict=True)
            ]
        return tuple(found)

    def token_logprob(self, logprobs: Any, token: int, *, alternatives: int) -> TokenLogprob:
        """:param logprobs: of every token of the vocabulary."""
        values, tokens = torch.topk(logprobs, alternatives)
        return TokenLogprob(
            token=self.token_bytes(token),
            logprob=float(logprobs[token]),
            alternatives=tuple(
                (self.token_bytes(other), value)
                for value, other in zip(values.tolist(), tokens.tolist(), strict=True)
            ),
        )

    def token_bytes(self, token: int) -> bytes:
        return bytes(self._grammar_tokenizer.decode_bytes([token]))

    def decode(self, tokens: Sequence[int], *, special: bool) -> str:
        return str(self._decoding_tokenizer.decode(list(tokens), skip_special_tokens=not special))

    def answer_parser(
        self, request: GenerationRequest, prompt: Sequence[int], *, index: int
    ) -> AnswerParser:
        is_free = request.grammar is None or request.tools is not None
        if not (request.is_chat and is_free):
            return AnswerParser(index=index)
        return answer_parser(
            self._decoding_tokenizer,
            self._model,
            index=index,
            prompt=self.decode(prompt, special=True),
            tools=request.tools,
        )

    def is_end(self, token: int) -> bool:
        return token in self._ends

    def _grammar_mask(self, grammar: str, *, prompt_length: int) -> _GrammarMask:
        matcher = LLMatcher(self._grammar_tokenizer, LLMatcher.grammar_from_lark(grammar))
        return _GrammarMask(matcher, prompt_length=prompt_length)

    @cached_property
    def _grammar_tokenizer(self) -> Any:
        """The vocabulary as bytes; made with the first request that needs it."""
        try:
            return from_tokenizer(
                copy.deepcopy(self._tokenizer),
                n_vocab=max(self._vocabulary, len(self._tokenizer)),
                eos_token=self._ends,
            )
        except ValueError as error:
            raise RequestRejected(
                f"this model's tokenizer supports neither JSON schemas nor logprobs: {error}"
            ) from error


class _GrammarMask:
    """A logits processor that leaves only what the grammar allows next."""

    def __init__(self, matcher: Any, *, prompt_length: int) -> None:
        self._matcher = matcher
        self._seen = prompt_length

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self._matcher.consume_tokens(input_ids[0, self._seen :].tolist())
        self._seen = input_ids.shape[1]
        if self._matcher.is_error():
            raise RuntimeError(self._matcher.get_error())
        mask = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        allowed = np.unpackbits(mask, bitorder="little")[: scores.shape[-1]].astype(bool)
        return scores.masked_fill(
            ~torch.from_numpy(allowed).to(scores.device).unsqueeze(0), -torch.inf
        )


class _TokenStream:
    """Emits one answer token by token (the interface of transformers' streamers)."""

    def __init__(
        self,
        request: GenerationRequest,
        prompt: Sequence[int],
        *,
        generator: TransformersGenerator,
        index: int,
        emit: Callable[[Event], None],
        cancelled: threading.Event,
    ) -> None:
        self._request = request
        self._prompt = prompt
        self._generator = generator
        self._index = index
        self._emit = emit
        self._cancelled = cancelled
        self._parser = generator.answer_parser(request, prompt, index=index)
        special = self._parser.needs_special_tokens
        self._text = Detokenizer(lambda tokens: generator.decode(tokens, special=special))
        self._stops = StopScanner(request.sampling.stops)
        self._prompt_seen = False
        self._ended = False
        self._logits: Any = None
        self._logprobs: list[TokenLogprob] = []
        #: Tokens of the answer so far.
        self.count = 0

    def echo(self, logprobs: Sequence[TokenLogprob]) -> None:
        text = self._generator.decode(self._prompt, special=False)
        self._emit(TextDelta(index=self._index, text=text, logprobs=tuple(logprobs)))

    def record_logits(self, _input_ids: Any, scores: Any) -> Any:
        """A logits processor that changes nothing; it comes before all that do."""
        self._logits = scores[0].float()
        return scores

    def put(self, value: Any) -> None:
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        for token in value.flatten().tolist():
            self.count += 1
            self._ended = self._generator.is_end(token)
            if self._request.logprobs is not None:
                self._logprobs.append(
                    self._generator.token_logprob(
                        torch.log_softmax(self._logits, dim=-1),
                        token,
                        alternatives=self._request.logprobs,
                    )
                )
            if not self._ended:
                self._push(self._stops.push(self._text.push(token)))

    def end(self) -> None:
        self._push(self._stops.push(self._text.finish()) + self._stops.finish())

    def must_stop(self, input_ids: Any, _scores: Any, **_: Any) -> Any:
        over = self._stops.stopped or self._cancelled.is_set()
        return torch.full((input_ids.shape[0],), over, device=input_ids.device)

    def finish(self, *, limit: int) -> None:
        """Emit what was held back, and the reason of the end."""
        self._emit_parts(self._parser.finish())
        reason = "tool_calls" if self._parser.called_tools else "stop"
        if self.count >= limit and not self._ended and not self._stops.stopped:
            reason = "length"
        if not self._cancelled.is_set():
            self._emit(
                ChoiceFinished(index=self._index, reason=reason, logprobs=self._take_logprobs())
            )

    def _push(self, text: str) -> None:
        if text:
            self._emit_parts(self._parser.push(text))

    def _emit_parts(self, parts: Sequence[Any]) -> None:
        if self._cancelled.is_set():
            return
        for part in parts:
            if isinstance(part, TextDelta) and self._logprobs:
                self._emit(
                    TextDelta(
                        index=part.index,
                        text=part.text,
                        is_reasoning=part.is_reasoning,
                        logprobs=self._take_logprobs(),
                    )
                )
            else:
                self._emit(part)

    def _take_logprobs(self) -> tuple[TokenLogprob, ...]:
        taken, self._logprobs = tuple(self._logprobs), []
        return taken


def _sampling_arguments(sampling: SamplingParameters, defaults: Any) -> dict[str, Any]:
    """Arguments of ``generate``; the model's generation config fills what the request omits."""
    temperature = sampling.temperature
    if temperature is None:
        temperature = float(defaults.temperature or 1.0) if defaults.do_sample else 0.0
    if temperature == 0.0:
        return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    top_p = sampling.top_p if sampling.top_p is not None else defaults.top_p or 1.0
    # transformers refuses 0; the smallest share keeps the likeliest token alone.
    top_p = max(float(top_p), 1e-6)
    top_k = defaults.top_k if defaults.do_sample else 0
    return {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": top_k}


def load_adapters(model: Any, folders: Mapping[str, Path]) -> tuple[Any, AdapterSelector]:
    """The model with the adapters in it, and the function that selects one.

    :param folders: name → folder with ``adapter_config.json`` and ``adapter_model.safetensors``; at least one.
    :raises InvalidTaskInput: if an adapter cannot be loaded into the model.
    """
    # Without adapters, peft need not be imported.
    from peft import PeftModel

    # Names of adapters become names of modules, which ``keys`` or ``a.b`` cannot be.
    keys = {name: f"adapter_{number}" for number, name in enumerate(folders, start=1)}
    adapted: Any = None
    for name, folder in folders.items():
        try:
            if adapted is None:
                adapted = PeftModel.from_pretrained(model, folder, adapter_name=keys[name])
            else:
                adapted.load_adapter(folder, adapter_name=keys[name])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise InvalidTaskInput(
                f"the LoRA adapter {name} cannot be loaded into the model: {reason}"
            ) from error
    adapted.eval()

    @contextmanager
    def select(name: str | None) -> Iterator[None]:
        if name is None:
            with adapted.disable_adapter():
                yield
        else:
            adapted.set_adapter(keys[name], inference_mode=True)
            yield

    return adapted, select
