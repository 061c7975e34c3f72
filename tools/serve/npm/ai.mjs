// The interfaces through the AI SDK: OpenAI's chats, responses, completions and vectors, and Anthropic's messages.

import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { Output, embedMany, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { MODEL, SCHEMA, isPainted, settled } from "./common.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

const openai = (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
const anthropic = (url) => createAnthropic({ baseURL: `${url}/v1`, apiKey: "none" });
const KINDS = {
  chat: (url) => openai(url).chat(MODEL),
  responses: (url) => openai(url).responses(MODEL),
  messages: (url) => anthropic(url)(MODEL),
};
const asked = { prompt: "Tell me of a cat.", maxOutputTokens: 30, temperature: 0, maxRetries: 0 };

async function texts(url) {
  for (const [kind, model] of Object.entries(KINDS)) {
    const whole = await generateText({ ...asked, model: model(url) });
    assert.ok(whole.text && whole.usage.outputTokens > 0, kind);
    const stream = streamText({ ...asked, model: model(url) });
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    assert.equal(text, whole.text, kind);
    assert.equal(await stream.finishReason, whole.finishReason, kind);
    assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens, kind);
  }
  return Object.keys(KINDS).join(", ");
}

async function completions(url) {
  const { text } = await generateText({ ...asked, model: openai(url).completion(MODEL) });
  assert.ok(text);
  return JSON.stringify(text);
}

async function tools(url) {
  for (const [kind, model] of Object.entries(KINDS)) {
    const painted = [];
    const paint = tool({
      description: "paints",
      inputSchema: jsonSchema(SCHEMA),
      execute: (input) => (painted.push(input), "painted"),
    });
    const { steps } = await generateText({
      ...asked,
      maxOutputTokens: 200,
      model: model(url),
      tools: { paint },
      toolChoice: { type: "tool", toolName: "paint" },
      // The second question carries the call and its result.
      stopWhen: stepCountIs(2),
    });
    assert.ok(painted.length >= 1, kind);
    painted.forEach(isPainted);
    assert.equal(steps[0].finishReason, "tool-calls", kind);
    assert.equal(steps.length, 2, kind);
  }
  return Object.keys(KINDS).join(", ");
}

async function forms(url) {
  for (const kind of ["chat", "responses"]) {
    const { output } = await generateText({
      ...asked,
      maxOutputTokens: 100,
      model: KINDS[kind](url),
      output: Output.object({ schema: jsonSchema(SCHEMA), name: "paint" }),
    });
    isPainted(output);
  }
  return "chat, responses";
}

async function embeddings(url) {
  const { embeddings } = await embedMany({ model: openai(url).embedding("embed"), values: ["a cat", "a dog"] });
  assert.equal(embeddings.length, 2);
  return `${embeddings[0].length} dimensions`;
}

async function errors(url) {
  const run = generateText({ ...asked, model: openai(url).chat("other") });
  await assert.rejects(run, (error) => error.statusCode === 404 && /other/.test(error.message));
  return "model";
}

async function cancel(url) {
  const stop = new AbortController();
  const stream = streamText({ ...asked, maxOutputTokens: 400, model: KINDS.chat(url), abortSignal: stop.signal });
  let seen = 0;
  for await (const _ of stream.textStream) if ((seen += 1) === 3) stop.abort();
  await settled(url);
}

export const CHECKS = [texts, completions, tools, forms, embeddings, errors, cancel];
