// Conversations, kept in this browser.

const PLACE = "yirage.conversations";

// All of them, the newest first. What cannot be read is as if it were not there.
export function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(PLACE) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one?.id === "string" && Array.isArray(one.messages)) : [];
  } catch {
    return [];
  }
}

// Keeps them. Gives whether the browser had room.
export function save(conversations) {
  try {
    localStorage.setItem(PLACE, JSON.stringify(conversations));
    return true;
  } catch {
    return false;
  }
}

export function fresh() {
  return { id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`, messages: [] };
}

// The beginning of its first message.
export function title(conversation) {
  const first = conversation.messages.find((message) => message.role === "user");
  if (!first) return "New conversation";
  const line = first.content.trim().split("\n")[0];
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}
