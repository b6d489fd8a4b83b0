// What is wrong with the page for people who use a keyboard, a screen reader or weak eyes: one line each.
const wrong = [];
const say = (text, node) => wrong.push(`${text}: ${node.outerHTML.slice(0, 120)}`);
if (!document.documentElement.lang) wrong.push("no language");
if (!document.title) wrong.push("no title");
for (const [what, least] of [["main", 1], ["header", 1], ["h1", 1]]) {
  if (document.querySelectorAll(what).length !== least) wrong.push(`${what}: not ${least}`);
}
for (const table of document.querySelectorAll("table")) {
  if ([...table.querySelectorAll("th")].some((th) => !th.scope)) say("a header without scope", table);
}
for (const field of document.querySelectorAll("input, select")) {
  if (!field.labels.length && !field.ariaLabel) say("a field without a label", field);
}
for (const svg of document.querySelectorAll("svg")) if (!svg.querySelector("title")) say("a graph without a name", svg);
for (const node of document.querySelectorAll("[style], [onclick]")) say("style or code in an attribute", node);
const ids = [...document.querySelectorAll("[id]")].map((n) => n.id).filter((id) => id !== "a");
ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => wrong.push(`id twice: ${id}`));
let level = 1;
for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
  if (+heading.tagName[1] > level + 1) say("a level left out", heading);
  level = +heading.tagName[1];
}
for (const scrolls of document.querySelectorAll("pre, .graph, .scroll")) if (scrolls.tabIndex < 0) say("not reached by keys", scrolls);
const numbers = (color) => (color.match(/[\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => {
  const part = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const behind = (node) => {
  for (let n = node; n; n = n.parentElement) {
    const color = numbers(getComputedStyle(n).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text = texts.nextNode(); text; text = texts.nextNode()) {
  const node = text.parentElement;
  if (!text.data.trim() || !node.checkVisibility() || node.closest("svg, script, style, option")) continue;
  const [a, b] = [light(numbers(getComputedStyle(node).color)), light(behind(node))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) say(`contrast ${contrast.toFixed(1)}`, node);
}
const outside = performance.getEntriesByType("resource").filter((r) => new URL(r.name).origin !== location.origin);
outside.forEach((r) => wrong.push(`loaded from elsewhere: ${r.name}`));
return wrong;
