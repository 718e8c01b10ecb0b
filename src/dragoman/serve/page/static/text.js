// Texts of a model: Markdown that is drawn block by block while it is written, code, thinking.
import { Component, html, useMemo, useState } from "./vendor/preact-htm.js";
import { count, duration, visible } from "./format.js";
import { highlighted } from "./highlight.js";
import { icon } from "./icons.js";
import { blocksOf, proseNodes } from "./markdown.js";

const MOST_SHOWN = 200_000;
const LONG_THOUGHT = 950;

export function Copy({ text, label = "Copy" }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    // There is no clipboard where the page came by plain HTTP from another machine.
    const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    if (!isCopied) return;
    setDone(true);
    setTimeout(() => setDone(false), 1600);
  };
  return html`<button class="quiet" type="button" onClick=${copy} title=${label} aria-label=${isDone ? "Copied" : label}>
    ${icon(isDone ? "check" : "copy")}
  </button>`;
}

// A node that is filled by hand, and only when its text changes.
class Filled extends Component {
  shouldComponentUpdate(next) {
    return next.text !== this.props.text;
  }
  componentDidMount() {
    this.fill();
  }
  componentDidUpdate() {
    this.fill();
  }
  fill() {
    this.node.replaceChildren(this.props.make(this.props.text));
  }
  render({ tag }) {
    const ref = (node) => (this.node = node);
    return tag === "code" ? html`<code ref=${ref} />` : html`<div class="prose" dir="auto" ref=${ref} />`;
  }
}

const Code = ({ text, language }) => html`<figure class="code">
  <figcaption><span>${visible(language || "text")}</span><${Copy} text=${text} label="Copy code" /></figcaption>
  <pre tabindex="0"><${Filled} tag="code" text=${text} make=${highlighted} /></pre>
</figure>`;

export function Text({ text, isOpen }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole || text.length <= MOST_SHOWN ? text : text.slice(0, MOST_SHOWN);
  const blocks = useMemo(() => blocksOf(visible(shown)), [shown]);
  return html`<div class=${isOpen ? "text writing" : "text"}>
    ${blocks.map((block, n) =>
      block.kind === "code"
        ? html`<${Code} key=${n} ...${block} />`
        : html`<${Filled} key=${n} text=${block.raw} make=${proseNodes} />`,
    )}
    ${shown.length < text.length &&
    html`<button type="button" class="chip" onClick=${() => setWhole(true)}>Show all ${count(text.length)} characters</button>`}
  </div>`;
}

export function Thinking({ text, isOpen, milliseconds }) {
  let label = milliseconds > LONG_THOUGHT ? `Thought for ${duration(milliseconds)}` : "Thought";
  if (isOpen) label = "Thinking";
  return html`<details class="thinking">
    <summary><span class=${isOpen ? "pulse" : ""}>${icon("spark")}</span>${label}${icon("chevron")}</summary>
    <div class="thought" dir="auto">${visible(text)}</div>
  </details>`;
}

const isPicture = ({ mediaType, data, url }) => /^image\/(png|jpeg|gif|webp)$/.test(mediaType) && data && !url;

export function File({ name, mediaType, data, url }) {
  if (isPicture({ mediaType, data, url })) {
    return html`<figure class="picture"><img src=${`data:${mediaType};base64,${data}`} alt=${visible(name)} loading="lazy" /></figure>`;
  }
  return html`<span class="chip file">${icon("clip")}${visible(name)}</span>`;
}
