// When each model call and tool waited, answered first, and ended.
import { html } from "./vendor/preact-htm.js";
import { count, duration, money, shortModel, tokens, visible } from "./format.js";
import { icon } from "./icons.js";

const STEPS = [1, 2, 5, 10];
const MOST_MARKS = 5;

function marksOf(seconds) {
  const power = 10 ** Math.floor(Math.log10(seconds / MOST_MARKS));
  const step = power * STEPS.find((each) => seconds / (power * each) <= MOST_MARKS);
  return Array.from({ length: Math.floor((seconds * 0.97) / step) + 1 }, (_, n) => n * step);
}

const share = (part, whole) => `${Math.min(100, Math.max(0, (part / whole) * 100))}%`;

function Bar({ span, whole }) {
  const from = span.asked ?? span.start ?? 0;
  const to = span.end ?? whole;
  const working = span.kind === "tool" ? span.start : span.first;
  const idle = working === null || working === undefined ? (span.kind === "tool" ? to - from : 0) : working - from;
  return html`<span class="bar" style=${{ left: share(from, whole), width: share(to - from, whole) }}>
    ${idle > 0 && html`<span class="idle" style=${{ width: share(idle, Math.max(to - from, 1e-9)) }} />`}
  </span>`;
}

function summary({ usage, cost, denied, is_error: isError, error, kind }) {
  if (kind === "model" && usage) return `${count(tokens(usage))} tok${cost ? ` · ${money(cost)}` : ""}`;
  if (denied) return "denied";
  return isError || error ? "failed" : "";
}

export function Waterfall({ spans, seconds, isOver, chosen, onChoose }) {
  const whole = Math.max(seconds ?? 0, ...spans.map((span) => span.end ?? 0), 0.001);
  const marks = marksOf(whole);
  return html`<div class="fall">
    <div class="axis" aria-hidden="true"><span class="lane">${marks.map((mark) => html`<i style=${{ left: share(mark, whole) }}>${mark ? duration(mark * 1000) : "0"}</i>`)}</span></div>
    ${spans.map((span, n) => {
      const isBad = span.is_error || span.error;
      const names = ["span", span.kind, isBad ? "bad" : "", span.dropped ? "dropped" : "", chosen === n ? "chosen" : ""];
      const open = isOver ? "waits" : "goes on";
      const took = span.end === null ? open : duration((span.end - (span.asked ?? span.start)) * 1000);
      return html`<button type="button" key=${n} class=${names.filter(Boolean).join(" ")} aria-expanded=${chosen === n ? "true" : "false"} onClick=${() => onChoose(chosen === n ? null : n)}>
        <span class="label" style=${{ marginLeft: `${span.depth ?? 0}em` }}>${icon(span.kind === "model" ? "spark" : "tool")}<b>${visible(span.kind === "model" ? shortModel(span.model ?? span.name) : span.name)}</b>
          ${span.losses?.length > 0 && html`<em class="pill loss">−${span.losses.length}<span class="hidden"> left out</span></em>`}</span>
        <span class="lane">${marks.map((mark) => html`<i class="mark" style=${{ left: share(mark, whole) }} />`)}<${Bar} span=${span} whole=${whole} /></span>
        <span class="took"><span>${took}</span><small>${summary(span)}</small></span>
      </button>`;
    })}
    ${!spans.length && html`<p class="none">No model has been asked yet.</p>`}
  </div>`;
}
