"""``/v1/audio/transcriptions`` over Whisper of transformers; audio is read by libsndfile."""

from __future__ import annotations

import io
import math
import threading
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.serving import request_fields
from ninefold_runtime.serving.asgi import AsgiRequest, AsgiResponse
from ninefold_runtime.serving.operations import Operation, OperationContext, ServedModel
from ninefold_runtime.serving.request_fields import (
    RequestRejected,
    parse_choice,
    parse_number,
    parse_text,
)

_GRANULARITIES = "timestamp_granularities[]"
_FIELDS = frozenset(
    {"model", "language", "prompt", "response_format", "temperature", _GRANULARITIES}
)
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "chunking_strategy": ("auto",),
    "stream": ("false",),
}
#: As in OpenAI's interface.
_LARGEST_FILE = 25 * 1024 * 1024
_LARGEST_BODY = _LARGEST_FILE + 64 * 1024
_LONGEST_SECONDS = 2 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionRequest:
    """Audio, and what its text should look like."""

    model: str
    audio: bytes
    #: A code such as ``en``; None to detect it.
    language: str | None
    prompt: str | None
    temperature: float
    response_format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscribedSegment:
    """Text between two times, in seconds."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcription:
    """The text of the audio."""

    text: str
    #: Its English name, such as ``english``.
    language: str
    #: In seconds.
    duration: float
    segments: tuple[TranscribedSegment, ...]


class Transcriber(Protocol):
    """What the operation needs of a model. One thread uses it at a time."""

    def check_language(self, language: str) -> None:
        """:raises RequestRejected: if the model does not know it."""

    def transcribe(
        self, request: TranscriptionRequest, cancelled: threading.Event
    ) -> Transcription:
        """:raises RequestRejected: if the audio cannot be read or is too long."""


def parse_transcription_request(form: Mapping[str, str], audio: bytes) -> TranscriptionRequest:
    """:raises RequestRejected: naming the field that is wrong, missing or not supported."""
    fields: dict[str, Any] = {name: value for name, value in form.items() if value}
    request_fields.check_fields(fields, supported=_FIELDS, neutral=_NEUTRAL)
    if not audio:
        raise RequestRejected("file must be an audio file that is not empty", param="file")
    if len(audio) > _LARGEST_FILE:
        raise RequestRejected(
            f"file has {len(audio):,} bytes; the limit is {_LARGEST_FILE:,}",
            status=413,
            param="file",
        )
    parse_choice(fields, _GRANULARITIES, ("segment",))
    try:
        fields["temperature"] = float(fields.get("temperature", 0))
    except ValueError as error:
        raise RequestRejected(
            f"temperature must be a number, not {fields['temperature']!r}", param="temperature"
        ) from error
    return TranscriptionRequest(
        model=parse_text(fields, "model"),
        audio=audio,
        language=fields.get("language"),
        prompt=fields.get("prompt"),
        temperature=parse_number(fields, "temperature", least=0, most=1) or 0.0,
        response_format=parse_choice(fields, "response_format", ("json", "text", "verbose_json")),
    )


def parse_form(body: bytes, *, content_type: bytes) -> tuple[dict[str, str], bytes]:
    """Fields and the content of ``file`` of a multipart form.

    :raises RequestRejected: if the body is not such a form.
    """
    import python_multipart
    from python_multipart.exceptions import FormParserError

    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}

    def on_field(field: Any) -> None:
        fields[field.field_name.decode()] = (field.value or b"").decode()

    def on_file(file: Any) -> None:
        file.file_object.seek(0)
        files[file.field_name.decode()] = file.file_object.read()

    if not content_type.startswith(b"multipart/form-data"):
        raise RequestRejected(
            f"the body must be multipart/form-data, not {content_type.decode('latin-1')!r}"
        )
    try:
        parser = python_multipart.create_form_parser(
            {"Content-Type": content_type},
            on_field,
            on_file,
            config={"MAX_MEMORY_FILE_SIZE": len(body)},
        )
        parser.write(body)
        parser.finalize()
    except (FormParserError, UnicodeDecodeError, ValueError) as error:
        raise RequestRejected(f"the body is not a multipart form: {error}") from error
    if unknown := sorted(set(files) - {"file"}):
        raise RequestRejected(f"{unknown[0]} must not be a file", param=unknown[0])
    return fields, files.get("file", b"")


class TranscriptionOperation:
    """Transcriptions by one model."""

    def __init__(self, transcriber: Transcriber, *, context: OperationContext) -> None:
        self._transcriber = transcriber
        self._context = context

    def routes(self) -> Mapping[str, Operation]:
        return {"/v1/audio/transcriptions": self.transcribe}

    async def transcribe(self, request: AsgiRequest, response: AsgiResponse) -> None:
        body = await request.body(largest=_LARGEST_BODY)
        form, audio = parse_form(body, content_type=request.header(b"content-type"))
        wanted = parse_transcription_request(form, audio)
        self._context.check_model(wanted.model)
        if wanted.language is not None:
            self._transcriber.check_language(wanted.language)
        began_at = time.monotonic()
        found = await self._context.queue.run(
            lambda cancelled: self._transcriber.transcribe(wanted, cancelled), request=request
        )
        self._context.metrics.generated(
            prompt_tokens=0,
            completion_tokens=sum(len(segment.tokens) for segment in found.segments),
            seconds=time.monotonic() - began_at,
        )
        if wanted.response_format == "text":
            text = found.text.encode() + b"\n"
            await response.whole(200, text, kind=b"text/plain; charset=utf-8")
            return
        document: dict[str, Any] = {
            "text": found.text,
            "usage": {"type": "duration", "seconds": math.ceil(found.duration)},
        }
        if wanted.response_format == "verbose_json":
            document |= {
                "task": "transcribe",
                "language": found.language,
                "duration": found.duration,
                "segments": [
                    _segment_document(segment, index=index, temperature=wanted.temperature)
                    for index, segment in enumerate(found.segments)
                ],
            }
        await response.json(200, document)


def _segment_document(
    segment: TranscribedSegment, *, index: int, temperature: float
) -> dict[str, Any]:
    text = segment.text.encode()
    return {
        "id": index,
        "seek": round(segment.start * 100),
        "start": segment.start,
        "end": segment.end,
        "text": segment.text,
        "tokens": segment.tokens,
        "temperature": temperature,
        "compression_ratio": len(text) / len(zlib.compress(text)),
    }


class WhisperTranscriber:
    """Implements ``Transcriber`` over Whisper."""

    def __init__(self, *, model: Any, processor: Any) -> None:
        from transformers.models.whisper.tokenization_whisper import LANGUAGES

        self._model = model
        self._processor = processor
        self._names: Mapping[str, str] = LANGUAGES
        #: The code of a language → its token; empty if the model has one language.
        self._languages: dict[str, int] = {
            token.strip("<|>"): number
            for token, number in (
                getattr(model.generation_config, "lang_to_id", None) or {}
            ).items()
        }

    def check_language(self, language: str) -> None:
        known = self._languages or {"en": 0}
        if language not in known:
            raise RequestRejected(
                f"language is {language!r}; this model has {', '.join(sorted(known))}",
                param="language",
            )

    def transcribe(
        self, request: TranscriptionRequest, cancelled: threading.Event
    ) -> Transcription:
        import torch

        rate = int(self._processor.feature_extractor.sampling_rate)
        samples = read_audio(request.audio, rate=rate)
        inputs = self._processor(
            samples,
            sampling_rate=rate,
            return_tensors="pt",
            return_attention_mask=True,
            # Beyond the window of 30 seconds the model goes through the audio in parts.
            **(
                {"truncation": False, "padding": "longest"}
                if len(samples) > self._processor.feature_extractor.n_samples
                else {}
            ),
        )
        features = inputs.input_features.to(self._model.device, self._model.dtype)
        with torch.inference_mode():
            language = self._language(request, features)
            segments = self._generate(
                request,
                features,
                inputs.attention_mask.to(self._model.device),
                language=language,
                cancelled=cancelled,
            )
        return Transcription(
            text="".join(segment.text for segment in segments).strip(),
            language=self._names.get(language, language),
            duration=len(samples) / rate,
            segments=segments,
        )

    def _language(self, request: TranscriptionRequest, features: Any) -> str:
        if not self._languages:
            return "en"
        if request.language is not None:
            return request.language
        window = self._processor.feature_extractor.nb_max_frames
        token = int(self._model.detect_language(input_features=features[..., :window])[0])
        return next(code for code, number in self._languages.items() if number == token)

    def _generate(
        self,
        request: TranscriptionRequest,
        features: Any,
        attention_mask: Any,
        *,
        language: str,
        cancelled: threading.Event,
    ) -> tuple[TranscribedSegment, ...]:
        import torch
        from transformers import StoppingCriteriaList

        def must_stop(input_ids: Any, _scores: Any, **_: Any) -> Any:
            return torch.full((input_ids.shape[0],), cancelled.is_set(), device=input_ids.device)

        arguments: dict[str, Any] = {}
        if self._languages:
            arguments |= {"language": language, "task": "transcribe"}
        if request.prompt is not None:
            prompt = self._processor.get_prompt_ids(request.prompt, return_tensors="pt")
            arguments["prompt_ids"] = prompt.to(self._model.device)
        if request.temperature > 0:
            arguments["temperature"] = request.temperature
            arguments["do_sample"] = True
        output = self._model.generate(
            features,
            attention_mask=attention_mask,
            return_timestamps=True,
            return_segments=True,
            stopping_criteria=StoppingCriteriaList([must_stop]),
            **arguments,
        )
        return tuple(
            TranscribedSegment(
                start=round(float(segment["start"]), 2),
                end=round(float(segment["end"]), 2),
                text=self._processor.tokenizer.decode(segment["tokens"], skip_special_tokens=True),
                tokens=tuple(segment["tokens"].tolist()),
            )
            for segment in output["segments"][0]
        )


def read_audio(content: bytes, *, rate: int) -> Any:
    """The samples as float32, one channel, at that rate.

    :raises RequestRejected: if libsndfile cannot read the file, or it is too long.
    """
    import numpy as np
    import soundfile
    from scipy.signal import resample_poly

    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            seconds = file.frames / file.samplerate
            if not 0 < seconds <= _LONGEST_SECONDS:
                raise RequestRejected(
                    f"file lasts {seconds:.0f} seconds; it must last from 0 to {_LONGEST_SECONDS}",
                    param="file",
                )
            samples = file.read(dtype="float32", always_2d=True).mean(axis=1)
            found = int(file.samplerate)
    except soundfile.SoundFileError as error:
        raise RequestRejected(
            f"file cannot be read as audio: {error}; WAV, FLAC, OGG and MP3 are supported",
            param="file",
        ) from error
    if found != rate:
        divisor = math.gcd(found, rate)
        samples = resample_poly(samples, rate // divisor, found // divisor)
    return np.asarray(samples, dtype=np.float32)


def load_transcription(folder: Path, *, precision: str, context: OperationContext) -> ServedModel:
    """:raises InvalidTaskInput: if the model cannot be loaded."""
    from transformers import AutoModelForSpeechSeq2Seq, AutoProcessor

    from ninefold_runtime import model_loading

    model = model_loading.load_model(
        folder, precision=precision, auto_class=AutoModelForSpeechSeq2Seq
    ).eval()
    try:
        processor = AutoProcessor.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise InvalidTaskInput(f"the model's processor cannot be loaded: {error}"[:400]) from error
    if getattr(model.generation_config, "no_timestamps_token_id", None) is None:
        raise InvalidTaskInput("the model's generation_config.json has no no_timestamps_token_id")
    transcriber = WhisperTranscriber(model=model, processor=processor)
    return ServedModel(
        operations=TranscriptionOperation(transcriber, context=context).routes(),
        description=f"{type(model).__name__} with {model.num_parameters():,} parameters",
        context_length=None,
    )
