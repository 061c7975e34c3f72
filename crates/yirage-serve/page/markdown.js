// Markdown to elements. Text of a model only ever becomes text: no markup of it is parsed, and a link leads to http or https.

export function element(name, children = [], attributes = {}) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...[children].flat());
  return made;
}

// No more than three: a run of thousands would take for ever.
const INLINE = /(`{1,3})(.+?)\1|\*\*(.+?)\*\*|\*([^*\s](?:[^*]*[^*\s])?)\*|\[([^\]]+)\]\(([^()\s]+)\)/s;
const DEEPEST = 6;

// Code, bold, emphasis and links.
function inline(text, depth = 0) {
  const out = [];
  let rest = text;
  for (;;) {
    const found = depth < DEEPEST ? INLINE.exec(rest) : null;
    if (!found) {
      if (rest) out.push(rest);
      return out;
    }
    if (found.index > 0) out.push(rest.slice(0, found.index));
    const [whole, , code, bold, emphasis, label, target] = found;
    if (code !== undefined) out.push(element("code", code));
    else if (bold !== undefined) out.push(element("strong", inline(bold, depth + 1)));
    else if (emphasis !== undefined) out.push(element("em", inline(emphasis, depth + 1)));
    else out.push(link(label, target, whole));
    rest = rest.slice(found.index + whole.length);
  }
}

function link(label, target, whole) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return whole;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return whole;
  return element("a", label, { href: url.href, rel: "noopener noreferrer nofollow", target: "_blank" });
}

function codeBlock(language, lines) {
  const text = lines.join("\n");
  const copy = element("button", "Copy", { type: "button" });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not copied";
    }
  });
  const pre = element("pre", element("code", text), { tabindex: "0" });
  return element("div", [element("p", [element("span", language || "code"), copy]), pre], { class: "code" });
}

const FENCE = /^\s*(`{3,}|~{3,})\s*(\S*)/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^\s*([-*_])(?:\s*\1){2,}\s*$/;
const CELLS = /^\s*\|(.+)\|\s*$/;

const begins = (line) => FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || RULE.test(line)
  || CELLS.test(line) || line.startsWith(">");

// The blocks of a text.
export function markdown(text, depth = 0) {
  const lines = text.split("\n");
  const out = [];
  let at = 0;
  const take = (wanted) => {
    const from = at;
    while (at < lines.length && wanted(lines[at])) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (line.trim() === "") {
      at += 1;
    } else if (fence) {
      at += 1;
      const ends = (other) => other.trim().startsWith(fence[1]) && other.trim().replace(/[`~]/g, "") === "";
      out.push(codeBlock(fence[2], take((other) => !ends(other))));
      at += 1;
    } else if (heading) {
      at += 1;
      // The page itself has the first three levels.
      out.push(element(`h${Math.min(6, heading[1].length + 3)}`, inline(heading[2])));
    } else if (RULE.test(line)) {
      at += 1;
      out.push(element("hr"));
    } else if (line.startsWith(">") && depth < DEEPEST) {
      const inner = take((other) => other.startsWith(">")).map((other) => other.replace(/^> ?/, ""));
      out.push(element("blockquote", markdown(inner.join("\n"), depth + 1)));
    } else if (ITEM.test(line)) {
      out.push(list(take((other) => ITEM.test(other) || /^\s+\S/.test(other))));
    } else if (CELLS.test(line)) {
      out.push(table(take((other) => CELLS.test(other))));
    } else {
      const first = lines[at];
      at += 1;
      out.push(element("p", inline([first, ...take((other) => other.trim() !== "" && !begins(other))].join("\n"))));
    }
  }
  return out;
}

// A list; lines that are further in belong to the item before them.
function list(lines, depth = 0) {
  const [, indent, mark] = ITEM.exec(lines[0]);
  const ordered = /\d/.test(mark);
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && (item[1].length <= indent.length || items.length === 0)) items.push({ text: item[3], inner: [] });
    else items.at(-1).inner.push(line);
  }
  const of = ({ text, inner }) => {
    const children = inline(text);
    const from = inner.findIndex((line) => ITEM.test(line));
    const plain = from < 0 ? inner : inner.slice(0, from);
    if (plain.length) children.push(" ", ...inline(plain.map((line) => line.trim()).join(" ")));
    if (from >= 0 && depth < DEEPEST) children.push(list(inner.slice(from), depth + 1));
    else if (from >= 0) children.push(" ", inner.slice(from).join(" "));
    return element("li", children);
  };
  const start = ordered ? { start: String(parseInt(mark, 10)) } : {};
  return element(ordered ? "ol" : "ul", items.map(of), start);
}

function table(lines) {
  const cells = lines.map((line) => CELLS.exec(line)[1].split("|").map((cell) => cell.trim()));
  const headed = cells.length > 1 && cells[1].every((cell) => /^:?-+:?$/.test(cell));
  const row = (name) => (of) => element("tr", of.map((cell) => element(name, inline(cell))));
  const body = headed ? cells.slice(2) : cells;
  const parts = [element("tbody", body.map(row("td")))];
  if (headed) parts.unshift(element("thead", row("th")(cells[0])));
  return element("table", parts);
}
