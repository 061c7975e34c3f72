// Anthropic's interface through Anthropic's own library.

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema";
import { HELLO, MODEL, SCHEMA, isPainted, settled } from "./common.mjs";

const client = (url) => new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0, timeout: 120_000 });
const text_of = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");

async function messages(url) {
  const asked = { model: MODEL, max_tokens: 30, messages: HELLO, temperature: 0, system: "Be brief." };
  const whole = await client(url).messages.create(asked);
  const stream = client(url).messages.stream(asked);
  let text = "";
  stream.on("text", (piece) => (text += piece));
  const final = await stream.finalMessage();
  assert.equal(text, text_of(whole));
  assert.equal(final.stop_reason, whole.stop_reason);
  assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
  return JSON.stringify(text);
}

async function tools(url) {
  const asked = {
    model: MODEL,
    max_tokens: 200,
    messages: HELLO,
    temperature: 1,
    tools: [{ name: "paint", description: "paints", input_schema: SCHEMA }],
    tool_choice: { type: "tool", name: "paint" },
  };
  const answer = await client(url).messages.create(asked);
  const call = answer.content.at(-1);
  assert.equal(answer.stop_reason, "tool_use");
  isPainted(call.input);
  const streamed = await client(url).messages.stream(asked).finalMessage();
  isPainted(streamed.content.at(-1).input);
  const result = { type: "tool_result", tool_use_id: call.id, content: "done" };
  const history = [...HELLO, { role: "assistant", content: answer.content }, { role: "user", content: [result] }];
  await client(url).messages.create({ model: MODEL, max_tokens: 5, messages: history, tools: asked.tools });
  return JSON.stringify(call.input);
}

// A form as the library asks for it.
async function parse(url) {
  const asked = { model: MODEL, max_tokens: 200, messages: HELLO, temperature: 1 };
  // The library writes bounds of numbers into the description, where they hold nobody.
  const painting = { ...SCHEMA, properties: { ...SCHEMA.properties, count: { enum: [1, 2, 3] } } };
  const format = jsonSchemaOutputFormat(painting);
  const parsed = await client(url).messages.parse({ ...asked, output_config: { format } });
  isPainted(parsed.parsed_output);
  const final = await client(url).messages.stream({ ...asked, output_config: { effort: "low", format } }).finalMessage();
  isPainted(JSON.parse(text_of(final)));
  return JSON.stringify(parsed.parsed_output);
}

async function count(url) {
  const { input_tokens } = await client(url).messages.countTokens({ model: MODEL, messages: HELLO });
  const { usage } = await client(url).messages.create({ model: MODEL, max_tokens: 1, messages: HELLO });
  assert.equal(input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
  return `${input_tokens} tokens`;
}

async function errors(url) {
  const asked = client(url).messages.create({ model: "other", max_tokens: 1, messages: HELLO });
  await assert.rejects(asked, (error) => error.status === 404 && error.error.error.type === "not_found_error");
  return "model";
}

async function cancel(url) {
  const stream = client(url).messages.stream({ model: MODEL, max_tokens: 400, messages: HELLO, temperature: 1 });
  let seen = 0;
  stream.on("text", () => (seen += 1) === 3 && stream.abort());
  await stream.done().catch((error) => assert.ok(error instanceof Anthropic.APIUserAbortError, error));
  await settled(url);
}

export const CHECKS = [messages, tools, parse, count, errors, cancel];
