// The official client `openai` for Node. Run by `node --test` in a folder with `node_modules`.

import assert from "node:assert/strict";
import { createReadStream, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

// Packages are those of the working folder, not of the folder of this file.
const require = createRequire(`${process.cwd()}/`);
const { default: OpenAI } = require("openai");
const { zodResponseFormat } = require("openai/helpers/zod");
const { z } = require("zod");

const { url, key, expected, tone } = JSON.parse(readFileSync(process.env.NINEFOLD_TEST_GATEWAY));
const options = { baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, timeout: 300_000 };
const client = new OpenAI(options);
const hello = [{ role: "user", content: "你好" }];

function assertClose(found, wanted) {
  assert.equal(found.length, wanted.length);
  found.forEach((value, index) => assert.ok(Math.abs(value - wanted[index]) < 1e-5));
}

test("models", async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.ok(names.includes("text") && names.includes("any"));
  assert.equal((await client.models.retrieve("text")).id, "text");
});

test("chat and its stream", async () => {
  const asked = { model: "text", messages: hello, temperature: 0, max_tokens: 8 };
  const whole = await client.chat.completions.create(asked);
  assert.equal(whole.usage.completion_tokens, 8);
  const stream = await client.chat.completions.create({
    ...asked, stream: true, stream_options: { include_usage: true },
  });
  let text = "", usage = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(usage.completion_tokens, 8);
});

test("a tool is called and its result is read", async () => {
  const { tools, messages } = expected.text;
  const asked = { model: "text", messages, tools, temperature: 0 };
  const { message } = (await client.chat.completions.create(asked)).choices[0];
  const [call] = message.tool_calls;
  assert.equal(call.function.name, "get_weather");
  assert.deepEqual(JSON.parse(call.function.arguments), { city: "西宁" });
  const streamed = await client.chat.completions.stream(asked).finalChatCompletion();
  assert.equal(
    streamed.choices[0].message.tool_calls[0].function.arguments, call.function.arguments,
  );
  const after = await client.chat.completions.create({
    ...asked,
    messages: [...messages, message, { role: "tool", tool_call_id: call.id, content: "sunny" }],
    max_tokens: 4,
  });
  assert.ok(after.usage.prompt_tokens > 0);
});

test("choices of a tool", async () => {
  const { tools, messages } = expected.text;
  const asked = { model: "text", messages, tools, temperature: 0 };
  const named = { type: "function", function: { name: "get_weather" } };
  for (const choice of ["auto", "required", named]) {
    // A list of calls has no end with this model.
    const answer = await client.chat.completions.create({
      ...asked, tool_choice: choice, parallel_tool_calls: false,
    });
    const [call] = answer.choices[0].message.tool_calls;
    assert.equal(call.function.name, "get_weather");
    assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)), ["city"]);
  }
  const answer = await client.chat.completions.create({
    ...asked, tool_choice: "none", max_tokens: 4,
  });
  assert.ok(!answer.choices[0].message.tool_calls?.length);
});

test("structured output", async () => {
  const Order = z.object({ level: z.enum(["low", "high"]), count: z.int().min(0).max(99) });
  const answer = await client.chat.completions.parse({
    model: "text", messages: hello, temperature: 1.5, seed: 5,
    response_format: zodResponseFormat(Order, "order"),
  });
  Order.parse(answer.choices[0].message.parsed);
});

test("a stream that is left", async () => {
  const stream = await client.chat.completions.create({
    model: "text", messages: hello, stream: true,
  });
  for await (const _ of stream) break;
  assert.ok(stream.controller.signal.aborted);
});

test("completions", async () => {
  const answer = await client.completions.create({
    model: "text", prompt: expected.text.prompt, max_tokens: 4,
  });
  assert.equal(answer.usage.completion_tokens, 4);
});

test("several choices, a stop, probabilities and the prompt", async () => {
  const several = await client.chat.completions.create({
    model: "text", messages: hello, n: 2, max_tokens: 4, logprobs: true, top_logprobs: 3,
  });
  assert.deepEqual(several.choices.map((choice) => choice.index), [0, 1]);
  for (const { logprobs } of several.choices) {
    for (const token of logprobs.content) assert.equal(token.top_logprobs.length, 3);
  }
  const asked = { model: "text", prompt: expected.text.prompt, temperature: 0 };
  const whole = (await client.completions.create({ ...asked, max_tokens: 8 })).choices[0].text;
  const end = whole.slice(2);
  const [stopped] = (await client.completions.create({ ...asked, max_tokens: 8, stop: [end] })).choices;
  assert.equal(stopped.text, whole.slice(0, whole.indexOf(end)));
  assert.equal(stopped.finish_reason, "stop");
  const echoed = await client.completions.create({ ...asked, max_tokens: 2, echo: true, logprobs: 1 });
  assert.ok(echoed.choices[0].text.startsWith(asked.prompt));
  assert.equal(echoed.choices[0].logprobs.token_logprobs.length, echoed.usage.total_tokens);
});

test("embeddings", async () => {
  const { texts, vectors } = expected.embedding;
  const answer = await client.embeddings.create({ model: "embedding", input: texts });
  answer.data.forEach((each, index) => assertClose(each.embedding, vectors[index]));
});

test("rerank, which the client has no method for", async () => {
  const { query, documents, order } = expected.reranking;
  const answer = await client.post("/rerank", { body: { model: "reranking", query, documents } });
  assert.deepEqual(answer.results.map((each) => each.index), order);
});

test("images", async () => {
  const answer = await client.images.generate({
    model: "images", prompt: "a red cube", size: "32x48", n: 2,
  });
  for (const each of answer.data) {
    assert.equal(Buffer.from(each.b64_json, "base64").subarray(1, 4).toString(), "PNG");
  }
  assert.equal(answer.data.length, 2);
});

test("transcriptions, translations and speech", async () => {
  const file = () => createReadStream(tone);
  const heard = await client.audio.transcriptions.create({
    model: "transcription", file: file(), language: "en",
  });
  assert.equal(heard.text, expected.transcription.text);
  const verbose = await client.audio.transcriptions.create({
    model: "transcription", file: file(), response_format: "verbose_json",
  });
  assert.equal(verbose.duration, 2);
  assert.equal((await client.audio.translations.create({ model: "any", file: file() })).text, "hello");
  const speech = await client.audio.speech.create({ model: "any", voice: "alloy", input: "hello" });
  const sound = Buffer.from(await speech.arrayBuffer());
  assert.ok(sound.byteLength > 1000);
  const streamed = await client.audio.speech.create({
    model: "any", voice: "alloy", input: "hello", stream_format: "sse",
  });
  const events = (await streamed.text()).split("\n").filter((line) => line.startsWith("data:"))
    .map((line) => JSON.parse(line.slice(5)));
  const parts = events.slice(0, -1).map((event) => Buffer.from(event.audio, "base64"));
  assert.ok(Buffer.concat(parts).equals(sound));
  assert.equal(events.at(-1).type, "speech.audio.done");
});

test("responses and their stream", async () => {
  assert.equal((await client.responses.create({ model: "any", input: "hi" })).output_text, "hello");
  const stream = client.responses.stream({ model: "any", input: "hi" });
  const kinds = [];
  for await (const event of stream) kinds.push(event.type);
  assert.equal(kinds.at(-1), "response.completed");
});

test("errors", async () => {
  const refused = (asked, as, code) => assert.rejects(
    client.chat.completions.create(asked),
    (error) => error instanceof as && error.code === code,
  );
  await refused({ model: "absent", messages: hello }, OpenAI.NotFoundError, "model_not_found");
  await refused({ model: "embedding", messages: hello }, OpenAI.BadRequestError, "unsupported_operation");
  await assert.rejects(
    new OpenAI({ ...options, apiKey: "sk-wrong" }).models.list(), OpenAI.AuthenticationError,
  );
  await assert.rejects(
    client.models.list({ headers: { "x-long": "a".repeat(100_000) } }),
    (error) => error.status === 431 && error.code === "headers_too_large",
  );
  await assert.rejects(
    client.chat.completions.create({
      model: "text", messages: [{ role: "user", content: "x".repeat(100_000_000) }],
    }),
    (error) => error.status === 413 && error.code === "request_too_large",
  );
});
