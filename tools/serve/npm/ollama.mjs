// ollama's interface through ollama's own library.

import assert from "node:assert/strict";
import { Ollama } from "ollama";
import { HELLO, MODEL, SCHEMA, isPainted, settled } from "./common.mjs";

const options = { temperature: 0, num_predict: 20 };
const client = (url) => new Ollama({ host: url });

async function models(url) {
  const { models } = await client(url).list();
  const names = models.map((model) => model.model);
  assert.ok(names.includes(MODEL), names.join());
  assert.ok((await client(url).show({ model: MODEL })).capabilities.includes("completion"));
  return names.join(", ");
}

async function chat(url) {
  const asked = { model: MODEL, messages: HELLO, options };
  const whole = await client(url).chat(asked);
  let streamed = "";
  for await (const part of await client(url).chat({ ...asked, stream: true })) streamed += part.message.content;
  assert.equal(streamed, whole.message.content);
  const formed = await client(url).chat({ ...asked, format: SCHEMA, options: { num_predict: 100, seed: 2 } });
  isPainted(JSON.parse(formed.message.content));
  return formed.message.content;
}

async function generate(url) {
  const asked = { model: MODEL, prompt: "Once upon a time", raw: true, options };
  const whole = await client(url).generate(asked);
  let streamed = "";
  for await (const part of await client(url).generate({ ...asked, stream: true })) streamed += part.response;
  assert.equal(streamed, whole.response);
  return JSON.stringify(whole.response);
}

// Any text comes through a stream as it was said: a form leaves the model nothing else to say.
async function unicode(url) {
  const texts = [
    "plain", "caf\u00e9 \u65e5\u672c\u8a9e", "a\u2028b\u2029c\u0085d", "\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u{1f1eb}\u{1f1f7}",
    "e\u0301 \u0645\u0631\u062d\u0628\u0627", "tab\tand\nline\r\nend \u007f", "quote\" back\\ slash/", "\ufeff\u200b \ufffd\u{10ffff}",
  ];
  for (const text of texts) {
    const asked = { model: MODEL, messages: HELLO, format: { enum: [text] }, options: { num_predict: 400, seed: 1 } };
    const whole = (await client(url).chat(asked)).message.content;
    let streamed = "";
    for await (const part of await client(url).chat({ ...asked, stream: true })) streamed += part.message.content;
    assert.equal(JSON.parse(whole), text);
    assert.equal(streamed, whole);
  }
  return `${texts.length} texts`;
}

async function embed(url) {
  const { embeddings } = await client(url).embed({ model: "embed", input: ["a cat", "a dog"] });
  assert.equal(embeddings.length, 2);
  return `${embeddings[0].length} dimensions`;
}

async function errors(url) {
  const asked = client(url).chat({ model: "other", messages: HELLO });
  await assert.rejects(asked, (error) => error.status_code === 404 && error.message.includes("other"));
  return "model";
}

async function cancel(url) {
  const ai = client(url);
  const asked = { model: MODEL, prompt: "Once", raw: true, stream: true, options: { num_predict: 400, temperature: 1 } };
  const parts = await ai.generate(asked);
  let seen = 0;
  const read = async () => {
    for await (const _ of parts) if ((seen += 1) === 3) parts.abort();
  };
  await read().catch((error) => assert.equal(error.name, "AbortError"));
  await settled(url);
}

export const CHECKS = [models, chat, generate, unicode, embed, errors, cancel];
