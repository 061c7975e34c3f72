// The conversations: shown, continued, kept.

import { events, request, showError } from "./api.js";
import { element, markdown } from "./markdown.js";
import { sampling, system } from "./settings.js";
import { fresh, load, save, title } from "./store.js";

const byId = (id) => document.getElementById(id);

let conversations = load();
let current = conversations[0] ?? fresh();
// What stops the answer that comes; none where none does.
let running = null;

export function startChat() {
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  byId("prompt").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && running && !byId("settings").open) running.abort();
  });
  byId("stop").addEventListener("click", () => running?.abort());
  byId("retry").addEventListener("click", retry);
  byId("new-conversation").addEventListener("click", () => open(fresh()));
  byId("delete-all").addEventListener("click", () => {
    conversations = [];
    keep();
    open(fresh());
  });
  open(current);
}

function open(conversation) {
  running?.abort();
  current = conversation;
  showError("");
  byId("messages").replaceChildren(...current.messages.map(shown));
  drawList();
  byId("messages").scrollTop = byId("messages").scrollHeight;
  byId("prompt").focus();
}

function drawList() {
  byId("chat-title").textContent = title(current);
  byId("retry").disabled = running !== null || current.messages.length === 0;
  byId("conversations").replaceChildren(...conversations.map((conversation) => {
    const name = title(conversation);
    const choose = element("button", name, { type: "button", title: name });
    if (conversation.id === current.id) choose.setAttribute("aria-current", "true");
    choose.addEventListener("click", () => open(conversation));
    const remove = element("button", "×", { type: "button", "aria-label": `Delete ${name}` });
    remove.addEventListener("click", () => {
      conversations = conversations.filter((other) => other.id !== conversation.id);
      keep();
      if (conversation.id === current.id) open(conversations[0] ?? fresh());
      else drawList();
    });
    return element("li", [choose, remove]);
  }));
}

function keep() {
  if (!save(conversations)) showError("This browser has no room for more; delete conversations to keep new ones.");
}

// A message as it stands in the page.
function shown(message) {
  const article = element("article", element("h3", message.role === "user" ? "You" : "Model"), {
    class: `message ${message.role}`,
  });
  fill(article, message);
  return article;
}

function fill(article, message) {
  const parts = [article.firstElementChild];
  if (message.reasoning) {
    const before = article.querySelector("details");
    const details = element("details", [element("summary", "Thoughts"), element("div", markdown(message.reasoning))]);
    details.open = before?.open ?? false;
    parts.push(details);
  }
  parts.push(element("div", markdown(message.content), { class: "text" }));
  if (message.figures) parts.push(element("p", message.figures, { class: "figures" }));
  article.replaceChildren(...parts);
}

function send() {
  const text = byId("prompt").value.trim();
  if (text === "" || running) return;
  byId("prompt").value = "";
  say({ role: "user", content: text });
  answer();
}

function say(message) {
  current.messages.push(message);
  conversations = [current, ...conversations.filter((other) => other.id !== current.id)];
  const article = shown(message);
  byId("messages").append(article);
  drawList();
  keep();
  return article;
}

// Drops the last answer and asks for another.
function retry() {
  if (running) return;
  while (current.messages.at(-1)?.role === "assistant") {
    current.messages.pop();
    byId("messages").lastElementChild.remove();
  }
  if (current.messages.length) answer();
}

async function answer() {
  const conversation = current;
  const messages = conversation.messages.map(({ role, content }) => ({ role, content }));
  if (system()) messages.unshift({ role: "system", content: system() });
  const message = { role: "assistant", content: "", reasoning: "" };
  const controller = new AbortController();
  running = controller;
  showError("");
  const article = say(message);
  busy(true, "The model is answering.");
  const began = performance.now();
  let usage = null;
  let first = null;
  let ended = "The answer is complete.";
  try {
    const response = await request("/v1/chat/completions", {
      model: byId("model").value, messages, stream: true, stream_options: { include_usage: true }, ...sampling(),
    }, controller.signal);
    let drawing = false;
    for await (const event of events(response)) {
      usage = event.usage ?? usage;
      const delta = event.choices?.[0]?.delta ?? {};
      const said = (delta.content ?? "") + (delta.reasoning_content ?? "");
      if (said === "") continue;
      first ??= performance.now();
      message.content += delta.content ?? "";
      message.reasoning += delta.reasoning_content ?? "";
      if (!drawing) {
        // Once a frame: a long text is not laid out anew for every token.
        drawing = true;
        requestAnimationFrame(() => {
          drawing = false;
          draw(article, message);
        });
      }
    }
  } catch (error) {
    ended = error.name === "AbortError" ? "The answer was stopped." : "";
    if (error.name !== "AbortError" && conversation.id === current.id) showError(error.message);
  }
  message.figures = figures(usage, began, first);
  running = null;
  finish(conversation, article, message);
  busy(false, ended);
}

function draw(article, message) {
  const log = byId("messages");
  const following = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  fill(article, message);
  if (following) log.scrollTop = log.scrollHeight;
}

// Keeps what came; an answer of nothing is none.
function finish(conversation, article, message) {
  if (message.content === "" && message.reasoning === "") {
    conversation.messages = conversation.messages.filter((other) => other !== message);
    article.remove();
  } else if (conversation.id === current.id) {
    draw(article, message);
  }
  keep();
  drawList();
}

function figures(usage, began, first) {
  if (!usage || first === null) return "";
  const seconds = (performance.now() - first) / 1000;
  const rate = usage.completion_tokens > 1 && seconds > 0 ? (usage.completion_tokens - 1) / seconds : null;
  const parts = [
    `${usage.completion_tokens} tokens`,
    `first after ${((first - began) / 1000).toFixed(2)} s`,
    rate === null ? null : `${rate.toFixed(1)} tokens/s`,
    `prompt ${usage.prompt_tokens} tokens, ${usage.prompt_tokens_details?.cached_tokens ?? 0} of them cached`,
  ];
  return parts.filter((part) => part !== null).join(" · ");
}

function busy(is, status) {
  byId("send").disabled = is;
  byId("stop").disabled = !is;
  byId("retry").disabled = is || current.messages.length === 0;
  byId("status").textContent = status;
}
