// What the user has decided. The key goes with the tab; the rest stays in this browser.

const PREFIX = "yirage.";
const NUMBERS = ["temperature", "top_p", "max_tokens", "seed"];

// The value of a name, after it was set to `value` where one is given.
export function remembered(name, value) {
  if (value !== undefined) localStorage.setItem(PREFIX + name, value);
  return localStorage.getItem(PREFIX + name) ?? "";
}

export function key() {
  return sessionStorage.getItem(PREFIX + "key") ?? "";
}

// The message of the system; empty where there is none.
export function system() {
  return remembered("system");
}

// Fields of a request that the user has set.
export function sampling() {
  const fields = {};
  for (const name of NUMBERS) {
    const text = remembered(name);
    if (text !== "" && Number.isFinite(Number(text))) fields[name] = Number(text);
  }
  return fields;
}

// Shows the dialog; `then` runs when it was closed.
export function openSettings(then) {
  const dialog = document.getElementById("settings");
  const field = (name) => document.getElementById(`set-${name}`);
  field("key").value = key();
  for (const name of ["system", ...NUMBERS]) field(name).value = remembered(name);
  dialog.addEventListener("close", () => {
    sessionStorage.setItem(PREFIX + "key", field("key").value.trim());
    for (const name of ["system", ...NUMBERS]) remembered(name, field(name).value);
    then();
  }, { once: true });
  dialog.showModal();
}
