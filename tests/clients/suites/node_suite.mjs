// The official client `openai` for Node. Run by `node --test` in a folder with `node_modules`.
// It has no call for `rerank`, which is sent with `client.post`, none for `messages` and `count_tokens`, and one for
// `videos` only as jobs, which the gateway does not serve.

import assert from "node:assert/strict";
import { createReadStream, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

// Packages are those of the working folder, not of the folder of this file.
const require = createRequire(`${process.cwd()}/`);
const { default: OpenAI } = require("openai");
const { zodResponseFormat, zodTextFormat } = require("openai/helpers/zod");
const { z } = require("zod");

const { url, key, expected, tone, sound, image } = JSON.parse(
  readFileSync(process.env.NINEFOLD_TEST_GATEWAY),
);
const options = { baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, timeout: 300_000 };
const client = new OpenAI(options);
const hello = [{ role: "user", content: "你好" }];

function assertClose(found, wanted, tolerance = 1e-5) {
  assert.equal(found.length, wanted.length);
  found.forEach((value, index) => assert.ok(Math.abs(value - wanted[index]) < tolerance));
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

test("images are read", async () => {
  const { images, question } = expected.vision;
  for (const [colour, address] of Object.entries(images)) {
    // As the model learnt it: first the image.
    const content = [
      { type: "image_url", image_url: { url: address } }, { type: "text", text: question },
    ];
    const answer = await client.chat.completions.create({
      model: "vision", messages: [{ role: "user", content }], temperature: 0, max_tokens: 8,
    });
    assert.equal(answer.choices[0].message.content, colour);
  }
});

test("a tool is called and its result is read", async () => {
  const { tools, messages, answer } = expected.text;
  const asked = { model: "text", messages, tools, temperature: 0 };
  const { message } = (await client.chat.completions.create(asked)).choices[0];
  const [call] = message.tool_calls;
  assert.equal(call.function.name, "get_weather");
  assert.deepEqual(JSON.parse(call.function.arguments), { city: "西宁" });
  assert.equal(message.content, answer.split("\n")[0]);
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
  const { token_logprobs: scored } = echoed.choices[0].logprobs;
  assert.equal(scored.length, echoed.usage.total_tokens);
  const { logprobs: known } = expected.text;
  assertClose(scored.slice(1, 1 + known.length), known, 1e-4);
});

test("embeddings", async () => {
  const { texts, vectors } = expected.embedding;
  const answer = await client.embeddings.create({ model: "embedding", input: texts });
  answer.data.forEach((each, index) => assertClose(each.embedding, vectors[index]));
});

test("rerank, which the client has no method for", async () => {
  const { query, documents, order, scores } = expected.reranking;
  const answer = await client.post("/rerank", { body: { model: "reranking", query, documents } });
  assert.deepEqual(answer.results.map((each) => each.index), order);
  assertClose(answer.results.map((each) => each.relevance_score), scores);
});

test("images", async () => {
  const answer = await client.images.generate({
    model: "images", prompt: expected.images.prompt, size: "32x48", n: 2, seed: 5,
  });
  const [first, second] = answer.data.map((each) => Buffer.from(each.b64_json, "base64"));
  assert.equal(answer.data.length, 2);
  assert.ok(!first.equals(second));
  // The test compares its pixels.
  writeFileSync(image, first);
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
  const known = Buffer.from(sound, "base64");
  assert.ok(Buffer.from(await speech.arrayBuffer()).equals(known));
  const streamed = await client.audio.speech.create({
    model: "any", voice: "alloy", input: "hello", stream_format: "sse",
  });
  const events = (await streamed.text()).split("\n").filter((line) => line.startsWith("data:"))
    .map((line) => JSON.parse(line.slice(5)));
  const parts = events.slice(0, -1).map((event) => Buffer.from(event.audio, "base64"));
  assert.ok(Buffer.concat(parts).equals(known));
  assert.equal(events.at(-1).type, "speech.audio.done");
});

test("responses and their stream", async () => {
  const { tools, messages, answer } = expected.text;
  const asked = {
    model: "text", input: messages, temperature: 0,
    tools: tools.map((tool) => ({ type: "function", ...tool.function })),
  };
  const [text] = answer.split("\n");
  const whole = await client.responses.create(asked);
  const call = whole.output.at(-1);
  assert.equal(whole.output_text, text);
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ["get_weather", { city: "西宁" }]);
  const stream = client.responses.stream(asked);
  const events = [];
  for await (const event of stream) events.push(event);
  const deltas = events.filter((event) => event.type === "response.output_text.delta");
  assert.equal(deltas.map((event) => event.delta).join(""), text);
  assert.equal(events.at(-1).type, "response.completed");
  const final = await stream.finalResponse();
  assert.equal(final.output.at(-1).arguments, call.arguments);
  assert.deepEqual(final.usage, whole.usage);
  const result = { type: "function_call_output", call_id: call.call_id, output: "sunny" };
  const after = await client.responses.create({
    ...asked, input: [...messages, ...whole.output, result], max_output_tokens: 4,
  });
  assert.equal(after.usage.output_tokens, 4);
  const Order = z.object({ level: z.enum(["low", "high"]), count: z.int().min(0).max(99) });
  const parsed = await client.responses.parse({
    model: "text", input: "an order", text: { format: zodTextFormat(Order, "order") },
  });
  Order.parse(parsed.output_parsed);
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
