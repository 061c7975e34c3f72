// Requests to the server that this page came from, and errors as it says them.

import { key } from "./settings.js";

// Asks, and gives the response; a refusal is an error with the server's own words.
export async function request(path, body, signal) {
  const headers = {};
  if (key()) headers.authorization = `Bearer ${key()}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer.");
  }
  if (response.ok) return response;
  let message = `The server answered with status ${response.status}.`;
  try {
    message = (await response.json()).error?.message ?? message;
  } catch {
    // What came is no JSON; the status says it all.
  }
  if (response.status === 401) message += " Enter the key in the settings.";
  throw new Error(message);
}

// The objects of a stream of server-sent events, up to [DONE]. A stream that ends without it has broken off.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("The answer broke off.");
    pending += value;
    const lines = pending.split("\n");
    pending = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const data = line.slice(5).trim();
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new Error(event.error.message ?? "The answer broke off.");
      yield event;
    }
  }
}

// Shows what went wrong; an empty text is that nothing did.
export function showError(text) {
  const place = document.getElementById("error");
  place.textContent = text;
  place.hidden = text === "";
}
