// Which of the two pages is shown, and what both share.

import { request, showError } from "./api.js";
import { startChat } from "./chat.js";
import { showEngine } from "./engine.js";
import { openSettings, remembered } from "./settings.js";

const pages = ["chat", "engine"];

function show() {
  const wanted = location.hash.slice(1);
  const page = pages.includes(wanted) ? wanted : "chat";
  for (const name of pages) {
    document.getElementById(name).hidden = name !== page;
    const link = document.getElementById(`to-${name}`);
    if (name === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showEngine(page === "engine");
}

// The list of models; what was chosen before stays chosen.
async function models() {
  const select = document.getElementById("model");
  try {
    const list = await (await request("/v1/models")).json();
    const names = list.data.map((model) => model.id);
    select.replaceChildren(...names.map((name) => new Option(name, name)));
    const before = remembered("model");
    if (names.includes(before)) select.value = before;
    showError("");
  } catch (error) {
    showError(error.message);
  }
}

document.getElementById("model").addEventListener("change", (event) => {
  remembered("model", event.target.value);
});
document.getElementById("open-settings").addEventListener("click", () => openSettings(models));
window.addEventListener("hashchange", show);
startChat();
show();
models();
