"""Every kind of model that the product serves, by the official client where it has the operation."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import openai
import pytest
from PIL import Image

from tests.engine.servers import MODEL, Server, running_server


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest,
    engine_python: Path,
    served_models: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """Of the kind that the parameter names; one process for all tests of a kind."""
    kind = str(request.param)
    folder = tmp_path_factory.mktemp(kind)
    with running_server(engine_python, served_models / kind, folder=folder) as server:
        yield server


def of_kind(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("server", [kind], indirect=True)


@of_kind("text")
def test_a_model_calls_a_tool_and_reads_its_result(server: Server, expected: Any) -> None:
    known = expected["text"]
    asked: dict[str, Any] = {
        "model": MODEL,
        "messages": known["messages"],
        "tools": known["tools"],
        "temperature": 0,
    }
    with server.client() as client:
        whole = client.chat.completions.create(**asked).choices[0]
        assert whole.finish_reason == "tool_calls"
        assert whole.message.content == "Hello."
        (call,) = whole.message.tool_calls or []
        assert call.type == "function"
        assert call.function.name == "get_weather"
        assert json.loads(call.function.arguments) == {"city": "西宁"}

        with client.chat.completions.stream(**asked) as stream:
            streamed = stream.get_final_completion().choices[0]
        assert streamed.finish_reason == "tool_calls"
        assert streamed.message.content == "Hello."
        assert [each.function.arguments for each in streamed.message.tool_calls or []] == [
            call.function.arguments
        ]

        result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        conversation = [*known["messages"], whole.message.model_dump(exclude_none=True), result]
        after = client.chat.completions.create(
            **(asked | {"messages": conversation, "max_tokens": 4})
        )
        assert after.usage is not None
        assert after.usage.prompt_tokens > 0


@of_kind("text")
def test_messages_that_break_the_chat_template_are_refused(server: Server, expected: Any) -> None:
    for path, field, given in (
        ("/v1/chat/completions", "messages", [{"role": "user", "content": "broken"}]),
        ("/v1/responses", "input", "broken"),
    ):
        status, body = server.post(path, **{field: given})
        assert (status, body["error"]["param"]) == (400, field)
        assert "chat template refuses the messages" in body["error"]["message"]


@of_kind("text")
def test_a_forced_call_has_the_arguments_of_its_schema(server: Server, expected: Any) -> None:
    (tool,) = expected["text"]["tools"]
    schema = tool["function"]["parameters"]
    other = {"type": "function", "function": {"name": "get_time"}}
    for choice, reason in (
        ("required", "tool_calls"),
        ({"type": "function", "function": {"name": "get_weather"}}, "stop"),
    ):
        for seed in range(3):
            status, body = server.post(
                "/v1/chat/completions",
                messages=[{"role": "user", "content": "hello"}],
                tools=[tool, other],
                tool_choice=choice,
                parallel_tool_calls=False,
                temperature=1.5,
                seed=seed,
            )
            assert status == 200, body
            assert body["choices"][0]["finish_reason"] == reason
            (call,) = body["choices"][0]["message"]["tool_calls"]
            arguments = json.loads(call["function"]["arguments"])
            if call["function"]["name"] == "get_weather":
                jsonschema_rs.validate(schema, arguments)
            else:
                assert arguments == {}
    status, body = server.post(
        "/v1/chat/completions",
        messages=[{"role": "user", "content": "hello"}],
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "thing"}}}],
        tool_choice="required",
    )
    assert (status, body["error"]["param"]) == (400, "tools")
    status, body = server.post(
        "/v1/responses",
        input="hello",
        tools=[{"type": "function", **tool["function"]}],
        tool_choice={"type": "function", "name": "get_weather"},
        max_output_tokens=2,
    )
    assert (status, body["status"]) == (200, "incomplete")
    (cut,) = body["output"]
    assert (cut["type"], cut["status"]) == ("function_call", "incomplete")


@of_kind("text")
def test_an_answer_matches_the_json_schema_that_was_asked_for(server: Server) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "level": {"enum": ["low", "high"]},
            "count": {"$ref": "#/$defs/count"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 3},
        },
        "required": ["name", "level", "count", "tags"],
        "additionalProperties": False,
        "$defs": {"count": {"type": "integer", "minimum": 0, "maximum": 99}},
    }
    asked: dict[str, Any] = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "你好"}],
        "temperature": 2,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "thing", "strict": True, "schema": schema},
        },
    }
    with server.client() as client:
        for seed in range(6):
            choice = client.chat.completions.create(**asked, seed=seed).choices[0]
            assert choice.finish_reason == "stop"
            # Strict: a raw control character in a string would be an error here.
            jsonschema_rs.validate(schema, json.loads(choice.message.content or ""))
        free = client.chat.completions.create(
            **(asked | {"response_format": {"type": "json_object"}, "max_tokens": 200}), seed=1
        ).choices[0]
        if free.finish_reason == "stop":
            assert isinstance(json.loads(free.message.content or ""), dict)
        refused = asked | {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": {"not": {"type": "string"}}},
            }
        }
        with pytest.raises(openai.BadRequestError, match="response_format"):
            client.chat.completions.create(**refused)


@of_kind("text")
def test_echoed_log_probabilities_are_those_of_the_model(server: Server, expected: Any) -> None:
    """As evaluation harnesses ask for them: tokens, or text, and one token that they throw away."""
    known = expected["text"]
    for prompt in (known["prompt"], known["tokens"]):
        status, body = server.post(
            "/v1/completions",
            prompt=prompt,
            echo=True,
            logprobs=1,
            max_tokens=1,
            temperature=0,
        )
        assert status == 200, body
        (choice,) = body["choices"]
        assert choice["text"].startswith(known["prompt"])
        found = choice["logprobs"]
        assert found["token_logprobs"][0] is None
        assert len(found["tokens"]) == len(known["tokens"]) + 1
        np.testing.assert_allclose(found["token_logprobs"][1:-1], known["logprobs"], atol=1e-4)
        best = [next(iter(top.values())) for top in found["top_logprobs"][1:-1]]
        np.testing.assert_allclose(best, known["best"], atol=1e-4)
        assert found["text_offset"][1] == len(found["tokens"][0])

    # The next token of a greedy answer is the likeliest one, and both shapes agree.
    status, body = server.post(
        "/v1/chat/completions",
        messages=[{"role": "user", "content": "你好"}],
        logprobs=True,
        top_logprobs=2,
        max_tokens=3,
        temperature=0,
        n=2,
    )
    assert status == 200, body
    first, second = body["choices"]
    assert first["message"] == second["message"]
    for token in first["logprobs"]["content"]:
        assert token["logprob"] == token["top_logprobs"][0]["logprob"]
        assert token["token"] == token["top_logprobs"][0]["token"]


@of_kind("text")
def test_a_prompt_is_scored_in_parts_as_it_is_in_one(server: Server) -> None:
    """Longer than what goes through the model at once."""
    word = [21, 34, 55, 89, 144, 233]
    status, body = server.post(
        "/v1/completions", prompt=[word * 50, word], echo=True, logprobs=0, max_tokens=0
    )
    assert status == 200, body
    long, short = (choice["logprobs"]["token_logprobs"] for choice in body["choices"])
    assert (len(long), len(short)) == (300, 6)
    np.testing.assert_allclose(long[1:6], short[1:], atol=1e-4)
    assert body["usage"]["completion_tokens"] == 0


@of_kind("embedding")
def test_embeddings_are_those_of_sentence_transformers(server: Server, expected: Any) -> None:
    known = expected["embedding"]
    wanted = np.array(known["vectors"])
    with server.client() as client:
        # Without a format the client asks for base64, and reads it.
        of_texts = client.embeddings.create(model=MODEL, input=known["texts"])
        of_tokens = client.embeddings.create(
            model=MODEL, input=known["tokens"], encoding_format="float"
        )
        short = client.embeddings.create(model=MODEL, input=known["texts"][0], dimensions=8)
        for response in (of_texts, of_tokens):
            found = np.array([each.embedding for each in response.data])
            np.testing.assert_allclose(found, wanted, atol=1e-6)
            assert response.usage.prompt_tokens == sum(map(len, known["tokens"]))
        cut = wanted[0, :8]
        np.testing.assert_allclose(short.data[0].embedding, cut / np.linalg.norm(cut), atol=1e-6)
        with pytest.raises(openai.BadRequestError, match=r"input\[1\] has \d+ tokens") as refused:
            client.embeddings.create(model=MODEL, input=["fox", "lazy dog " * 40])
        assert refused.value.code == "context_length_exceeded"
        with pytest.raises(openai.BadRequestError, match="33"):
            client.embeddings.create(model=MODEL, input="fox", dimensions=33)
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "hello"}]
            )
    status, body = server.post("/v1/embeddings", input="fox", encoding_format="base64")
    assert status == 200
    assert len(base64.b64decode(body["data"][0]["embedding"])) == 4 * 32


@of_kind("yes-or-no")
def test_a_causal_language_model_ranks_by_yes_and_no(server: Server, expected: Any) -> None:
    known = expected["yes-or-no"]
    status, body = server.post("/v1/rerank", query=known["query"], documents=known["documents"])
    assert status == 200, body
    assert [each["index"] for each in body["results"]] == known["order"]
    scores = [each["relevance_score"] for each in body["results"]]
    np.testing.assert_allclose(scores, known["scores"], atol=1e-5)


def seen(url: str, *, question: str = "") -> list[Any]:
    """A conversation with one image."""
    parts: list[Any] = [{"type": "image_url", "image_url": {"url": url}}]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": question}]}]


@of_kind("vision")
def test_an_answer_follows_from_the_pixels_of_the_image(server: Server, expected: Any) -> None:
    known = expected["vision"]
    with server.client() as client:

        def answer(url: str) -> Any:
            return client.chat.completions.create(
                model=MODEL,
                messages=seen(url, question=known["question"]),
                temperature=0,
                max_tokens=8,
            )

        for colour, url in known["images"].items():
            completion = answer(url)
            assert completion.choices[0].message.content == colour
            assert completion.usage.prompt_tokens == known["prompt_tokens"]
        assert answer(known["jpeg"]).choices[0].message.content == "blue"
        text = client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hello"}], max_tokens=2
        )
        assert text.usage is not None
        bomb = io.BytesIO()
        Image.new("1", (5000, 5000)).save(bomb, format="png")
        too_wide = "data:image/png;base64," + base64.b64encode(bomb.getvalue()).decode()
        for url, message in (
            ("http://127.0.0.1:1/private.png", "this server downloads nothing"),
            ("file:///etc/passwd", "this server downloads nothing"),
            ("data:image/png;base64,AAAA", "cannot be read as png"),
            ("data:image/jpeg;base64," + known["images"]["red"].partition(",")[2], "as jpeg"),
            (too_wide, "5000 × 5000 pixels"),
        ):
            with pytest.raises(openai.BadRequestError, match=message) as refused:
                answer(url)
            assert refused.value.param == "messages[0].content[0].image_url.url"
        status, body = server.post(
            "/v1/chat/completions", messages=seen(known["jpeg"], question="broken")
        )
        assert (status, body["error"]["param"]) == (400, "messages")


@of_kind("text")
def test_a_model_of_text_refuses_images(server: Server, expected: Any) -> None:
    status, body = server.post(
        "/v1/chat/completions", messages=seen(expected["vision"]["images"]["red"])
    )
    assert (status, body["error"]["code"]) == (400, "unsupported_parameter")
    assert body["error"]["message"] == "this model reads text only"


@of_kind("reranking")
def test_documents_are_ranked_as_the_cross_encoder_ranks_them(
    server: Server, expected: Any
) -> None:
    known = expected["reranking"]
    status, body = server.post("/v1/rerank", query=known["query"], documents=known["documents"])
    assert status == 200, body
    assert [each["index"] for each in body["results"]] == known["order"]
    scores = [each["relevance_score"] for each in body["results"]]
    np.testing.assert_allclose(scores, known["scores"], atol=1e-6)
    best = known["documents"][known["order"][0]]
    assert body["results"][0]["document"] == {"text": best}
    assert body["usage"]["total_tokens"] > 0
    status, body = server.post(
        "/v1/rerank",
        query=known["query"],
        documents=known["documents"],
        top_n=1,
        return_documents=False,
    )
    assert [sorted(each) for each in body["results"]] == [["index", "relevance_score"]]
    status, body = server.post("/v1/rerank", query="dog", documents=["dog", "lazy dog " * 40])
    assert (status, body["error"]["code"]) == (400, "context_length_exceeded")
    assert body["error"]["message"].startswith("documents[1] has")


@of_kind("transcription")
def test_audio_is_transcribed_with_the_times_of_its_segments(
    server: Server, served_models: Path, expected: Any
) -> None:
    known = expected["transcription"]
    with server.client() as client:

        def transcribe(name: str, **fields: Any) -> Any:
            with (served_models / name).open("rb") as file:
                return client.audio.transcriptions.create(model=MODEL, file=file, **fields)

        found = transcribe("tone.wav", language="en")
        assert found.text == known["text"]
        assert found.usage.seconds == 2
        assert transcribe("tone.wav", language="en", response_format="text") == f"{found.text}\n"

        for name, language in (("tone.wav", "en"), ("double.flac", openai.omit)):
            verbose = transcribe(name, response_format="verbose_json", language=language)
            assert (verbose.task, verbose.language) == ("transcribe", "english")
            assert (verbose.text, verbose.duration) == (known["text"], 2.0)
            (segment,) = verbose.segments
            assert (segment.start, segment.end) == (known["begin"], known["end"])
            assert segment.text.strip() == known["text"]
        # Longer than the window of the model.
        long = transcribe("long.wav", response_format="verbose_json", language="en")
        assert long.duration == 40.0
        assert long.text.count(known["text"]) == len(long.segments) > 1
        assert long.segments[-1].end > 30
        assert transcribe("tone.wav", prompt="a world", temperature=0.5).usage.seconds == 2

        for wrong, param in (
            ({"language": "xx"}, "language"),
            ({"response_format": "srt"}, "response_format"),
            ({"temperature": 2}, "temperature"),
            ({"stream": True}, "stream"),
        ):
            with pytest.raises(openai.BadRequestError) as refused:
                transcribe("tone.wav", **wrong)
            assert refused.value.param == param
        with pytest.raises(openai.BadRequestError, match="cannot be read as audio"):
            transcribe("expected.json")
    status, body = server.post("/v1/audio/transcriptions", file="x")
    assert (status, "multipart/form-data" in body["error"]["message"]) == (400, True)


@of_kind("images")
def test_an_image_is_that_of_the_pipeline_with_its_seed(server: Server, expected: Any) -> None:
    known = expected["images"]
    with server.client() as client:

        def generate(**fields: Any) -> list[Any]:
            response = client.images.generate(model=MODEL, prompt=known["prompt"], **fields)
            images = []
            for each in response.data or []:
                content = base64.b64decode(each.b64_json or "")
                with Image.open(io.BytesIO(content)) as image:
                    assert image.format == "PNG"
                    images.append(np.asarray(image))
            return images

        first, second = generate(size="32x48", n=2, extra_body={"seed": 5})
        np.testing.assert_allclose(first, known["pixels"], atol=1)
        assert not np.array_equal(first, second)
        (again,) = generate(size="32x48", response_format="b64_json", extra_body={"seed": 6})
        assert np.array_equal(again, second)
        assert generate()[0].shape == (64, 64, 3)
        for fields, param in (
            ({"size": "33x48"}, "size"),
            ({"response_format": "url"}, "response_format"),
            ({"n": 11}, "n"),
            ({"quality": "hd"}, "quality"),
        ):
            with pytest.raises(openai.BadRequestError) as refused:
                generate(**fields)
            assert refused.value.param == param
