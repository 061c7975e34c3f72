// OpenAI's interface through OpenAI's own library.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { HELLO, MODEL, SCHEMA, isPainted, settled } from "./common.mjs";

const PAINT = { name: "paint", description: "paints", parameters: SCHEMA };
const client = (url) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0, timeout: 120_000 });

async function models(url) {
  const names = [];
  for await (const model of client(url).models.list()) names.push(model.id);
  assert.ok(["story", "embed", "score"].every((name) => names.includes(name)), names.join());
  return names.join(", ");
}

async function chat_stream(url) {
  const asked = { model: MODEL, messages: HELLO, max_completion_tokens: 30, temperature: 1, seed: 5 };
  const whole = await client(url).chat.completions.create(asked);
  let [text, usage, end] = ["", null, null];
  for await (const chunk of await client(url).chat.completions.create({
    ...asked,
    stream: true,
    stream_options: { include_usage: true },
  })) {
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices) {
      text += choice.delta.content ?? "";
      end = choice.finish_reason ?? end;
    }
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(end, whole.choices[0].finish_reason);
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  return `${usage.completion_tokens} tokens`;
}

async function chat_helper(url) {
  const stream = client(url).chat.completions.stream({ model: MODEL, messages: HELLO, max_completion_tokens: 12 });
  const final = await stream.finalChatCompletion();
  assert.ok(final.choices[0].finish_reason);
  return JSON.stringify(final.choices[0].message.content);
}

async function chat_tools(url) {
  const asked = {
    model: MODEL,
    messages: HELLO,
    tools: [{ type: "function", function: PAINT }],
    tool_choice: { type: "function", function: { name: "paint" } },
    parallel_tool_calls: false,
    max_completion_tokens: 200,
    temperature: 1,
    seed: 3,
  };
  const { message, finish_reason } = (await client(url).chat.completions.create(asked)).choices[0];
  assert.equal(finish_reason, "tool_calls");
  const [call] = message.tool_calls;
  isPainted(JSON.parse(call.function.arguments));
  const streamed = await client(url).chat.completions.stream(asked).finalMessage();
  assert.equal(streamed.tool_calls[0].function.arguments, call.function.arguments);
  const messages = [...HELLO, message, { role: "tool", tool_call_id: call.id, content: "painted" }];
  await client(url).chat.completions.create({ model: MODEL, messages, tools: asked.tools, max_completion_tokens: 8 });
  return call.function.arguments;
}

async function chat_schema(url) {
  const answer = await client(url).chat.completions.parse({
    model: MODEL,
    messages: HELLO,
    max_completion_tokens: 100,
    temperature: 1,
    seed: 1,
    response_format: { type: "json_schema", json_schema: { name: "paint", schema: SCHEMA, strict: true } },
  });
  isPainted(JSON.parse(answer.choices[0].message.content));
  return answer.choices[0].message.content;
}

async function completions(url) {
  const asked = { model: MODEL, prompt: "Once upon a time", max_tokens: 10, temperature: 0 };
  const whole = (await client(url).completions.create(asked)).choices[0].text;
  let streamed = "";
  for await (const chunk of await client(url).completions.create({ ...asked, stream: true })) {
    streamed += chunk.choices[0]?.text ?? "";
  }
  assert.equal(streamed, whole);
  return JSON.stringify(whole);
}

async function embeddings(url) {
  // The library asks for base64 where no form is named, and decodes it.
  const input = ["The cat sat on the mat.", "A big dog, running!"];
  const packed = await client(url).embeddings.create({ model: "embed", input });
  const plain = await client(url).embeddings.create({ model: "embed", input, encoding_format: "float" });
  for (const [at, { embedding }] of plain.data.entries()) {
    assert.equal(packed.data[at].embedding.length, embedding.length);
    for (const [i, value] of embedding.entries()) {
      assert.ok(Math.abs(packed.data[at].embedding[i] - value) <= 1e-6 * Math.max(1, Math.abs(value)));
    }
  }
  return `${plain.data[0].embedding.length} dimensions`;
}

async function responses(url) {
  const asked = { model: MODEL, input: "Tell me of a cat.", max_output_tokens: 20, temperature: 0 };
  const first = await client(url).responses.create(asked);
  assert.ok(["completed", "incomplete"].includes(first.status) && first.output_text);
  const kinds = [];
  let text = "";
  for await (const event of await client(url).responses.create({ ...asked, stream: true })) {
    kinds.push(event.type);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal(kinds[0], "response.created");
  assert.equal(text, first.output_text);
  assert.equal((await client(url).responses.retrieve(first.id)).id, first.id);
  await client(url).responses.delete(first.id);
  await assert.rejects(client(url).responses.retrieve(first.id), OpenAI.NotFoundError);
  return `${kinds.length} events`;
}

// Turns as Codex has them: nothing is kept, so each has all that was said, tools that nobody here runs among it.
async function agent(url) {
  const tools = [
    { type: "function", name: "paint", description: "paints", strict: false, parameters: SCHEMA },
    { type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark", definition: "start: /.+/" } },
    { type: "web_search" },
    { type: "local_shell" },
  ];
  const asked = {
    model: MODEL, instructions: "You are an agent.", tools, parallel_tool_calls: true, store: false, max_output_tokens: 30,
    reasoning: { effort: "medium", summary: "auto" }, include: ["reasoning.encrypted_content"], prompt_cache_key: "0",
    text: { verbosity: "low" }, temperature: 1, client_metadata: { turn: "1" },
  };
  const message = (role, text) => ({ type: "message", role, content: [{ type: "input_text", text }] });
  const said = [message("developer", "Be brief."), message("user", "Paint a cat.")];
  for (const tool_choice of [{ type: "function", name: "paint" }, "auto"]) {
    const final = await client(url).responses.stream({ ...asked, input: said, tool_choice }).finalResponse();
    assert.ok(["completed", "incomplete"].includes(final.status) && final.usage.input_tokens > 0, JSON.stringify(final));
    for (const item of final.output) {
      // What the library puts beside what was sent stays with it.
      const { parsed_arguments, ...sent } = item;
      said.push(sent);
      if (item.type === "function_call") said.push({ type: "function_call_output", call_id: item.call_id, output: "painted" });
    }
    said.push({ type: "custom_tool_call", call_id: `c${said.length}`, name: "apply_patch", input: "*** Begin Patch" });
    said.push({ type: "custom_tool_call_output", call_id: said.at(-1).call_id, output: "Success." }, message("user", "Go on."));
  }
  return `${said.length} items`;
}

async function errors(url) {
  const asked = { model: MODEL, messages: HELLO, max_completion_tokens: 2 };
  const create = (more) => client(url).chat.completions.create({ ...asked, ...more });
  await assert.rejects(create({ model: "other" }), (error) => error.status === 404 && error.code === "model_not_found");
  await assert.rejects(create({ temprature: 1 }), (error) => error.status === 400 && error.param === "temprature");
  await assert.rejects(create({ temperature: 1000 }), (error) => error.status === 400 && error.param === "temperature");
  return "model, field, range";
}

async function cancel(url) {
  const stream = await client(url).completions.create({ model: MODEL, prompt: "Once", max_tokens: 400, n: 8, stream: true });
  let seen = 0;
  for await (const _ of stream) if ((seen += 1) === 3) stream.controller.abort();
  await settled(url);
}

export const CHECKS = [
  models, chat_stream, chat_helper, chat_tools, chat_schema, completions, embeddings, responses, agent, errors, cancel,
];
