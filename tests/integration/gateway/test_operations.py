"""Operations besides chat and completions, through the official client where it has them."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from gateway.engine_streams import MAX_EVENT_BYTES
from gateway.operations import FORMATS, RouteOperation
from tests.integration.gateway.clients import post
from tests.integration.gateway.conftest import SECRET, backend_of
from tests.integration.gateway.control_planes import FakeControl, key_of, route_of
from tests.integration.gateway.engines import MODEL
from tests.integration.gateway.operation_engines import PART as TEXT_PART
from tests.integration.gateway.operation_engines import SOUND, STREAMS, OperationsEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import wait_until

BOUNDARY = "multipart/form-data; boundary=x"
PART = b'--x\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
VIDEOS = FORMATS[RouteOperation.VIDEOS].path


@pytest.fixture
def engine() -> Iterator[OperationsEngine]:
    server = OperationsEngine().start()
    yield server
    server.stop()


@pytest.fixture
def control(engine: OperationsEngine) -> Iterator[FakeControl]:
    server = FakeControl().start()
    operations = [operation.value for operation in RouteOperation]
    server.publish(
        routes=[route_of("any", backend_of(engine.url), operations=operations)],
        keys=[key_of(SECRET)],
    )
    yield server
    server.stop()


@pytest.fixture
def client(gateway: GatewayProcess) -> openai.OpenAI:
    return gateway.client(SECRET)


def used(control: FakeControl) -> tuple[str, int, int, str]:
    """Operation, tokens and outcome of the only request."""
    (record,) = wait_until(lambda: control.records, what="the usage record")
    counts = record["prompt_tokens"], record["completion_tokens"]
    return record["operation"], *counts, record["outcome"]


def wav() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(b"\x01\x00\r\n--" * 200_000)
    return file.getvalue()


def test_embeddings(client: openai.OpenAI, engine: OperationsEngine, control: FakeControl) -> None:
    answer = client.embeddings.create(
        model="any", input=["a", "b"], dimensions=2, encoding_format="float"
    )
    assert (answer.model, answer.data[0].embedding) == ("any", [0.5, -0.5])
    assert engine.bodies[0]["model"] == MODEL
    assert engine.bodies[0]["dimensions"] == 2
    assert used(control) == ("embeddings", 9, 0, "ok")


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
def test_rerank(
    gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl, path: str
) -> None:
    body = {"model": "any", "query": "q", "documents": ["a", "b"], "top_n": 1}
    status, _, answer = post(gateway, body, path=path)
    assert (status, answer["model"]) == (200, "any")
    assert answer["results"] == [{"index": 1, "relevance_score": 0.9}]
    assert engine.bodies == [{**body, "model": MODEL}]
    assert used(control) == ("rerank", 9, 0, "ok")


def test_rerank_of_sglang_has_the_form_of_the_others(
    gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl
) -> None:
    engine.is_sglang = True
    body = {"model": "any", "query": "q", "documents": ["a", "b"]}
    status, _, answer = post(gateway, body, path="/v1/rerank")
    assert status == 200
    assert answer == {
        "model": "any",
        "results": [
            {"index": 1, "relevance_score": 0.9, "document": {"text": "b"}},
            {"index": 0, "relevance_score": 0.1, "document": {"text": "a"}},
        ],
        "usage": {"prompt_tokens": 9, "total_tokens": 9},
    }
    assert used(control) == ("rerank", 9, 0, "ok")


def test_images(client: openai.OpenAI, engine: OperationsEngine, control: FakeControl) -> None:
    answer = client.images.generate(model="any", prompt="a red square", size="256x256")
    assert answer.data is not None
    assert answer.data[0].b64_json == "aGk="
    assert engine.bodies == [{"model": MODEL, "prompt": "a red square", "size": "256x256"}]
    assert used(control)[0] == "images"


def test_transcriptions(
    client: openai.OpenAI, engine: OperationsEngine, control: FakeControl
) -> None:
    sound = wav()
    answer = client.audio.transcriptions.create(
        model="any",
        file=('a "quoted" 声.wav', sound, "audio/wav"),
        language="en",
        timestamp_granularities=["word"],
    )
    assert answer.text == "hello"
    assert engine.bodies[0] == {
        "model": MODEL, "language": "en", "timestamp_granularities[]": "word",
    }  # fmt: skip
    ((_, kind, received),) = engine.files
    assert (kind, received) == ("audio/wav", sound)
    assert used(control) == ("transcriptions", 0, 0, "ok")


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
def test_transcription_as_subtitles_and_translation(
    client: openai.OpenAI, engine: OperationsEngine
) -> None:
    file = ("a.wav", wav(), "audio/wav")
    subtitles = client.audio.transcriptions.create(model="any", file=file, response_format="srt")
    assert "00:00:00,000 --> " in subtitles
    assert client.audio.translations.create(model="any", file=file).text == "hello"


def test_speech(client: openai.OpenAI, engine: OperationsEngine, control: FakeControl) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="any", voice="alloy", input="hello there", response_format="wav"
    ) as answer:
        assert answer.headers["content-type"] == "audio/wav"
        assert answer.read() == SOUND
    assert engine.bodies[0]["voice"] == "alloy"
    assert used(control)[:2] == ("speech", 3)


def test_an_interrupted_speech_is_not_taken_for_whole(
    client: openai.OpenAI, engine: OperationsEngine, control: FakeControl
) -> None:
    engine.fails = True
    with pytest.raises(openai.APIConnectionError):
        client.audio.speech.create(model="any", voice="alloy", input="hello").read()
    assert used(control) == ("speech", 0, 0, "error")


def speech_events(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[5:]) for line in content.splitlines() if line.startswith(b"data:")]


def test_speech_as_events(
    client: openai.OpenAI, engine: OperationsEngine, control: FakeControl
) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="any", voice="alloy", input="hello there", stream_format="sse"
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        content = answer.read()
    assert content.startswith(b"event: speech.audio.delta\ndata:")
    assert b"[DONE]" not in content
    *parts, done = speech_events(content)
    assert b"".join(base64.b64decode(part["audio"]) for part in parts) == SOUND
    assert (done["type"], done["usage"]["output_tokens"]) == ("speech.audio.done", 4)
    assert "stream" not in engine.bodies[0]
    assert used(control) == ("speech", 9, 4, "ok")
    assert control.records[0]["first_token_ms"] is not None


def test_stream_of_speech_is_of_events_unless_it_is_audio(
    gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl
) -> None:
    headers = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
    for fields, content_type in (
        ({"stream": True}, "text/event-stream; charset=utf-8"),
        ({"stream": False, "stream_format": "sse"}, "text/event-stream; charset=utf-8"),
        ({"stream": True, "stream_format": "audio"}, "audio/wav"),
        ({"stream_format": "audio"}, "audio/wav"),
        ({"stream": False}, "audio/wav"),
    ):
        body = {"model": "any", "input": "hello there", **fields}
        status, received, answer = gateway.request(
            "POST", "/v1/audio/speech", body=json.dumps(body).encode(), headers=headers
        )
        assert (status, received["content-type"]) == (200, content_type), fields
        assert engine.bodies[-1] == {**body, "model": MODEL}
        if content_type == "audio/wav":
            assert answer == SOUND
        else:
            assert speech_events(answer)[-1]["type"] == "speech.audio.done"
    wait_until(lambda: len(control.records) == 5, what="the usage records")
    assert {record["outcome"] for record in control.records} == {"ok"}


def test_speech_as_events_that_fails(
    client: openai.OpenAI, engine: OperationsEngine, control: FakeControl
) -> None:
    engine.fails = True
    answer = client.audio.speech.create(
        model="any", voice="alloy", input="hello", stream_format="sse"
    )
    part, error = speech_events(answer.read())
    assert part["type"] == "speech.audio.delta"
    assert error["error"]["message"] == "any at [hidden] fails"
    assert used(control) == ("speech", 0, 1, "error")


def test_responses(client: openai.OpenAI, control: FakeControl) -> None:
    answer = client.responses.create(model="any", input="hi", store=True)
    assert (answer.model, answer.output_text) == ("any", "hello")
    assert used(control) == ("responses", 9, 4, "ok")


def test_a_stream_of_a_response(client: openai.OpenAI, control: FakeControl) -> None:
    events = list(client.responses.create(model="any", input="hi", stream=True))
    kinds = [event.type for event in events]
    assert kinds == [event["type"] for event in STREAMS["/v1/responses"]]
    assert MODEL not in str(events)
    assert used(control) == ("responses", 9, 4, "ok")


def test_a_stream_of_a_response_may_repeat_all_of_it_in_one_event(
    client: openai.OpenAI, engine: OperationsEngine, control: FakeControl
) -> None:
    text = "x" * 2 * MAX_EVENT_BYTES
    *first, last = STREAMS["/v1/responses"]
    whole = {"type": "response.output_text.done", **TEXT_PART, "text": text}
    engine.streams = {"/v1/responses": [*first, whole, last]}
    *_, done, final = client.responses.create(model="any", input="hi", stream=True)
    assert done.type == "response.output_text.done"
    assert (done.text, final.type) == (text, "response.completed")
    assert used(control) == ("responses", 9, 4, "ok")


def test_messages_and_their_errors(
    gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl
) -> None:
    body = {"model": "any", "max_tokens": 16, "messages": [{"role": "user", "content": "hi"}]}
    key = {"Authorization": "", "x_api_key": SECRET, "anthropic_version": "2023-06-01"}
    status, _, answer = post(gateway, body, path="/v1/messages", **key)
    assert (status, answer["model"]) == (200, "any")
    assert used(control) == ("messages", 9, 4, "ok")
    engine.fails = True
    status, _, answer = post(gateway, body, path="/v1/messages", **key)
    assert status == 400
    assert answer == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "any at [hidden] refuses"},
    }
    status, _, answer = post(
        gateway, body, path="/v1/messages", x_api_key="sk-no", Authorization=""
    )
    assert (status, answer["error"]["type"]) == (401, "authentication_error")


def test_a_stream_of_messages(gateway: GatewayProcess, control: FakeControl) -> None:
    body = {
        "model": "any", "max_tokens": 16, "stream": True,
        "messages": [{"role": "user", "content": "hi"}],
    }  # fmt: skip
    headers = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
    _, _, answer = gateway.request(
        "POST", "/v1/messages", body=json.dumps(body).encode(), headers=headers
    )
    events = [json.loads(line[5:]) for line in answer.splitlines() if line.startswith(b"data:")]
    assert [event["type"] for event in events] == [
        event["type"] for event in STREAMS["/v1/messages"]
    ]
    assert events[0]["message"]["model"] == "any"
    assert b"[DONE]" not in answer
    assert used(control) == ("messages", 9, 4, "ok")


def test_tokens_of_messages_are_counted_and_are_no_usage(
    stopped_gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl
) -> None:
    path = FORMATS[RouteOperation.COUNT_TOKENS].path
    body = {
        "model": "any", "system": "x" * 1600, "messages": [{"role": "user", "content": "hi"}],
    }  # fmt: skip
    control.publish(keys=[key_of(SECRET, tokens_per_minute=1000)])
    gateway = stopped_gateway
    gateway.start()
    status, headers, answer = post(gateway, body, path=path)
    assert (status, answer["input_tokens"]) == (200, 9)
    assert headers["x-ratelimit-remaining-tokens"] == "1000"
    assert engine.bodies == [{**body, "model": MODEL}]
    assert used(control) == ("count_tokens", 0, 0, "ok")
    status, headers, _ = post(gateway, {**body, "max_tokens": 16}, path="/v1/messages")
    assert status == 200
    assert int(headers["x-ratelimit-remaining-tokens"]) < 700, "the same messages are usage"
    engine.fails = True
    status, _, answer = post(gateway, body, path=path)
    assert (status, answer["type"], answer["error"]["message"]) == (
        400,
        "error",
        "any at [hidden] refuses",
    )
    for fields, message in (
        ({"messages": []}, "at least one message"),
        ({"stream": True}, "count_tokens has no streams"),
    ):
        status, _, answer = post(gateway, {**body, **fields}, path=path)
        assert (status, answer["type"]) == (400, "error"), fields
        assert message in answer["error"]["message"]


def form_of(**fields: str) -> bytes:
    """A body of the type :data:`BOUNDARY`."""
    parts = (PART % (name.encode(), b"", text.encode()) for name, text in fields.items())
    return b"".join(parts) + b"--x--\r\n"


def test_a_video_is_generated_in_one_request(
    gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl
) -> None:
    """As vLLM-Omni has it; a video may start from an image."""
    headers = {"Authorization": f"Bearer {SECRET}", "Content-Type": BOUNDARY}
    image = PART % (b"input_reference", b'; filename="a.png"', b"pixels")
    body = image + form_of(model="any", prompt="a lake at dawn", num_frames="33", seed="7")
    status, received, answer = gateway.request("POST", VIDEOS, body=body, headers=headers)
    assert (status, received["content-type"], answer) == (200, "video/mp4", SOUND)
    assert "x-model" not in received, "the engine's name of the model is its own"
    fields = {"model": MODEL, "prompt": "a lake at dawn", "num_frames": "33", "seed": "7"}
    assert engine.bodies == [fields]
    assert engine.files[0][::2] == ("a.png", b"pixels")
    operation, _prompt, completion, outcome = used(control)
    assert (operation, completion, outcome) == ("videos", 0, "ok")


def test_requests_for_videos_that_are_not_served_are_refused(
    gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl
) -> None:
    """Jobs of videos are not served, so no id of a job is known."""
    headers = {"Authorization": f"Bearer {SECRET}"}
    for method, path in (
        ("POST", "/v1/videos"),
        ("GET", "/v1/videos"),
        ("GET", "/v1/videos/video_1"),
        ("GET", "/v1/videos/video_1/content"),
        ("DELETE", "/v1/videos/video_1"),
    ):
        status, _, answer = gateway.request(method, path, headers=headers)
        assert (status, json.loads(answer)["error"]["type"]) == (404, "invalid_request_error"), path
    for body, expected, param in (
        (form_of(model="any"), 400, "prompt"),
        (form_of(prompt="a lake"), 400, "model"),
        (form_of(model="any", prompt="a lake", stream="true"), 400, "stream"),
    ):
        status, _, refused = post(gateway, body, path=VIDEOS, Content_Type=BOUNDARY)
        assert (status, refused["error"]["param"]) == (expected, param)
    assert post(gateway, {"model": "any", "prompt": "a lake"}, path=VIDEOS)[0] == 415
    assert engine.bodies == []


def test_a_video_has_the_limits_of_body_and_time(
    stopped_gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl
) -> None:
    gateway = GatewayProcess(
        home=stopped_gateway.home,
        control_url=control.url,
        NINEFOLD_GATEWAY_MAX_BODY_BYTES="2000",
        NINEFOLD_GATEWAY_TOTAL_SECONDS="0.5",
    )
    gateway.start()
    try:
        long = form_of(model="any", prompt="a" * 2000)
        assert post(gateway, long, path=VIDEOS, Content_Type=BOUNDARY)[0] == 413
        engine.hangs = True
        body = form_of(model="any", prompt="a lake")
        status, _, answer = post(gateway, body, path=VIDEOS, Content_Type=BOUNDARY)
        assert (status, answer["error"]["code"]) == (504, "upstream_timeout")
    finally:
        gateway.stop()


#: Path, body and the parameter that is refused.
INVALID_REQUESTS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("/v1/embeddings", {"input": []}, "input"),
    ("/v1/embeddings", {"input": "a", "stream": True}, "stream"),
    ("/v1/rerank", {"query": "q"}, "documents"),
    ("/v1/rerank", {"documents": ["a"]}, "query"),
    ("/v1/images/generations", {}, "prompt"),
    ("/v1/audio/speech", {"voice": "alloy"}, "input"),
    ("/v1/responses", {"input": "a", "previous_response_id": "resp_0"}, "previous_response_id"),
    ("/v1/responses", {"input": "a", "max_output_tokens": 0}, "max_output_tokens"),
)


def test_an_invalid_request_names_its_parameter(
    gateway: GatewayProcess, engine: OperationsEngine, subtests: pytest.Subtests
) -> None:
    for path, body, param in INVALID_REQUESTS:
        with subtests.test(path=path, param=param):
            status, _, answer = post(gateway, {"model": "any", **body}, path=path)
            assert (status, answer["error"]["param"]) == (400, param)
    assert engine.bodies == []


HOSTILE_FORMS: tuple[tuple[str, bytes, int], ...] = (
    ("application/json", b"{}", 415),
    ("multipart/form-data", b"", 400),
    (BOUNDARY, b"", 400),
    (BOUNDARY, b"no boundary at all", 400),
    (BOUNDARY, PART % (b"model", b"", b"any") + b"--x--\r\n", 400),
    (BOUNDARY, PART % (b"model", b"", b"\xff\xfe") + b"--x--\r\n", 400),
    (BOUNDARY, PART % (b"model", b"", b"any") * 100 + b"--x--\r\n", 400),
    (
        BOUNDARY,
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nab',
        400,
    ),
    (BOUNDARY, b"--x\r\nContent-Encoding: gzip\r\n" + PART[5:] % (b"a", b"", b"b"), 400),
    (BOUNDARY, b"--x\r\n" + b"A: b\r\n" * 100_000, 400),
)


def test_hostile_forms_are_refused(
    gateway: GatewayProcess, engine: OperationsEngine, subtests: pytest.Subtests
) -> None:
    for content_type, body, expected in HOSTILE_FORMS:
        with subtests.test(body=body[:80]):
            status, _, answer = post(
                gateway, body, path="/v1/audio/transcriptions", Content_Type=content_type
            )
            assert (status, answer["error"]["type"]) == (expected, "invalid_request_error")
    assert engine.bodies == []


def test_a_model_refuses_what_it_cannot_do(
    gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl
) -> None:
    control.publish(routes=[route_of("any", backend_of(engine.url), operations=["embeddings"])])

    def refused() -> dict[str, Any] | None:
        body = {"model": "any", "query": "q", "documents": ["a"]}
        status, _, answer = post(gateway, body, path="/v1/rerank")
        return answer if status == 400 else None

    answer = wait_until(refused, what="the snapshot") or {}
    assert answer["error"]["code"] == "unsupported_operation"
    assert "embeddings" in answer["error"]["message"]


def test_a_parameter_that_the_engine_ignores_is_refused(
    gateway: GatewayProcess, engine: OperationsEngine, control: FakeControl
) -> None:
    ignored = {"responses": {"text.format": "0.5.18"}, "telepathy": {"mood": "9.9"}}
    route = route_of(
        "any",
        backend_of(engine.url),
        operations=["responses", "embeddings"],
        ignored_parameters=ignored,
    )
    version = control.publish(routes=[route])
    wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the snapshot")

    def answer(text: object) -> tuple[int, dict[str, Any]]:
        body = {"model": "any", "input": "a", "text": text}
        status, _, content = post(gateway, body, path="/v1/responses")
        return status, content

    schema = {"type": "json_schema", "name": "a", "schema": {"type": "object"}}
    for form in (schema, {"type": "json_object"}):
        status, content = answer({"format": form})
        assert (status, content["error"]["param"]) == (400, "text.format")
        assert content["error"]["code"] == "unsupported_parameter"
        assert "from version 0.5.18 on" in content["error"]["message"]
    assert engine.bodies == []
    for text in (None, {}, {"format": None}, {"format": {"type": "text"}}, {"verbosity": "low"}):
        assert answer(text)[0] == 200
    assert post(gateway, {"model": "any", "input": "a"}, path="/v1/embeddings")[0] == 200


def test_an_unknown_url_is_answered_as_openai_does(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match=r"Invalid URL \(POST /v1/moderations\)"):
        client.moderations.create(input="a")


def test_each_operation_has_a_path_of_its_own() -> None:
    assert set(FORMATS) == set(RouteOperation)
    assert len({form.path for form in FORMATS.values()}) == len(FORMATS)
