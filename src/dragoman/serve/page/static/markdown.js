// Markdown of a model, as nodes that can do nothing. HTML in it is shown as text, pictures as links,
// and only links to web pages and mail addresses stay.
import "./vendor/purify.min.js"; // makes DOMPurify
import { Marked } from "./vendor/marked.js";

const TAGS = "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre strong sub sup table tbody td th thead tr ul";
const LINKS = /^(?:https?|mailto):/i;

const escape = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const marked = new Marked({
  gfm: true,
  async: false,
  renderer: {
    html: ({ text }) => escape(text),
    image: ({ href, text }) => `<a href="${escape(href)}">${escape(text || href)} (picture)</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});
const purify = globalThis.DOMPurify(window);

purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  const href = node.getAttribute("href") ?? "";
  if (!LINKS.test(href)) return node.removeAttribute("href");
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

// Returns the blocks of a text: {kind: "code", text, language} or {kind: "prose", raw}. A block that is
// complete stays the same text, so that only the last one is drawn anew while a model writes.
export function blocksOf(text) {
  return marked.lexer(text).flatMap((token) => {
    if (token.type === "space") return [];
    if (token.type === "code") return [{ kind: "code", text: token.text, language: token.lang ?? "" }];
    return [{ kind: "prose", raw: token.raw }];
  });
}

export function proseNodes(raw) {
  const made = purify.sanitize(marked.parse(raw), {
    ALLOWED_TAGS: TAGS.split(" "),
    ALLOWED_ATTR: ["href", "align", "start"],
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const node of made.querySelectorAll("pre, table")) node.tabIndex = 0; // can be scrolled by keys
  return made;
}
