// What the checks of all clients ask for.

import assert from "node:assert/strict";

export const MODEL = "story";
export const HELLO = [{ role: "user", content: "Tell me of a cat." }];
export const SCHEMA = {
  type: "object",
  properties: { colour: { enum: ["red", "blue"] }, count: { type: "integer", minimum: 0, maximum: 9 } },
  required: ["colour", "count"],
  additionalProperties: false,
};

/** Fails unless a value is of SCHEMA, which is checked by hand, so that no library of ours or theirs decides. */
export function isPainted(value) {
  assert.deepEqual(Object.keys(value).sort(), ["colour", "count"]);
  assert.ok(["red", "blue"].includes(value.colour), JSON.stringify(value));
  assert.ok(Number.isInteger(value.count) && value.count >= 0 && value.count <= 9, JSON.stringify(value));
}

/** Waits until the server has no open request. */
export async function settled(url) {
  const end = Date.now() + 30_000;
  for (;;) {
    const { open } = await (await fetch(`${url}/health/progress`)).json();
    if (!open) return;
    assert.ok(Date.now() < end, "a request is still open after 30 s");
    await new Promise((done) => setTimeout(done, 50));
  }
}
