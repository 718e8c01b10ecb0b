// A tool's call: what it is asked, how far it is, what it gave; and the card on which a person allows
// it, changes its arguments, or says no.
import { html, useState } from "./vendor/preact-htm.js";
import { count, duration, pretty, visible } from "./format.js";
import { icon } from "./icons.js";
import { faultsOf } from "./schema.js";

const SAID = {
  writing: "preparing",
  called: "waits",
  running: "running",
  waiting: "needs you",
  done: "done",
  failed: "failed",
  denied: "denied",
};
const MOST_SHOWN = 20_000;
const LONGEST_LINE = 90;

const cut = (text, most) => (text.length > most ? `${text.slice(0, most)}… (${count(text.length)} characters)` : text);

function firstLine({ arguments: values, raw }) {
  const text = values ? Object.values(values).map((value) => pretty(value).replace(/\s+/g, " ")).join(", ") : (raw ?? "");
  return text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)}…` : visible(text);
}

function Progress({ done, total, message }) {
  const share = total ? Math.min(1, done / total) : null;
  return html`<div class="progress">
    <progress max="1" value=${share ?? undefined} aria-label=${message || "Progress of the tool"} />
    <span>${visible(message ?? "")}${total ? ` ${count(done)} of ${count(total)}` : ""}</span>
  </div>`;
}

export function Tool({ block, onAnswer, isBusy }) {
  const { state, name, result, edited, progress, interrupt } = block;
  const shown = result === undefined ? "" : cut(pretty(result), MOST_SHOWN);
  return html`<div class=${`tool ${state}`}>
    <details open=${state === "failed"}>
      <summary>
        ${icon(state === "waiting" ? "hand" : "tool")}<b><bdi>${visible(name)}</bdi></b><span class="line">${firstLine(block)}</span>
        <span class="state">${SAID[state]}${block.milliseconds ? ` · ${duration(block.milliseconds)}` : ""}</span>${icon("chevron")}
      </summary>
      <div class="inside">
        <h4>Arguments</h4>
        <pre tabindex="0">${cut(pretty(block.arguments ?? block.raw ?? {}), MOST_SHOWN)}</pre>
        ${edited && html`<h4>Changed by a person to</h4><pre tabindex="0">${pretty(edited)}</pre>`}
        ${shown && html`<h4>${state === "failed" ? "Error" : "Result"}</h4><pre tabindex="0">${shown}</pre>`}
      </div>
    </details>
    ${progress && state === "running" && html`<${Progress} ...${progress} />`}
    ${block.isAnswered && html`<p class="ask">Answered. The run goes on once all questions are.</p>`}
    ${interrupt && onAnswer && !block.isAnswered && html`<${Ask} key=${interrupt.id} block=${block} interrupt=${interrupt} onAnswer=${onAnswer} isBusy=${isBusy} />`}
  </div>`;
}

function Editor({ text, setText, faults }) {
  return html`<label class="editor">
    <span>Arguments</span>
    <textarea rows=${Math.min(14, text.split("\n").length + 1)} spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)}
      aria-invalid=${faults.length ? "true" : "false"} />
    ${faults.length > 0 && html`<span class="wrong" role="alert">${faults.join(" ")}</span>`}
  </label>`;
}

// An approval, a question, or a call whose outcome nobody knows.
function Ask({ block, interrupt, onAnswer, isBusy }) {
  const [mode, setMode] = useState("ask");
  const [text, setText] = useState(JSON.stringify(block.arguments ?? {}, null, 2));
  const [reason, setReason] = useState("");
  const { schema, reason: kind, editable, message } = interrupt;
  const needsValue = kind === "input" || kind === "tool";
  let value = null;
  let faults = [];
  try {
    value = JSON.parse(text);
    faults = faultsOf(value, mode === "edit" ? block.schema : schema);
  } catch {
    if (mode === "edit" || needsValue) faults = ["This is no JSON."];
  }
  const id = { interrupt_id: interrupt.id };
  const send = (answer) => onAnswer({ ...id, ...answer });
  if (mode === "deny") {
    return html`<form class="ask" onSubmit=${(event) => (event.preventDefault(), send({ approved: false, reason: reason || undefined }))}>
      <label class="editor"><span>Why not? The model is told. (optional)</span><input value=${reason} onInput=${(event) => setReason(event.target.value)} /></label>
      <div class="buttons"><button class="bad" disabled=${isBusy}>Deny</button><button type="button" onClick=${() => setMode("ask")}>Back</button></div>
    </form>`;
  }
  if (mode === "edit" || needsValue) {
    const answer = needsValue ? { value } : { approved: true, arguments: value };
    return html`<form class="ask" onSubmit=${(event) => (event.preventDefault(), faults.length || send(answer))}>
      ${message && html`<p>${visible(message)}</p>`}
      <${Editor} text=${text} setText=${setText} faults=${faults} />
      <div class="buttons">
        <button class="primary" disabled=${isBusy || faults.length > 0}>${needsValue ? "Answer" : "Approve with these"}</button>
        ${!needsValue && html`<button type="button" onClick=${() => setMode("ask")}>Back</button>`}
        ${needsValue && html`<button type="button" onClick=${() => send({ cancelled: true })}>Cancel</button>`}
      </div>
    </form>`;
  }
  return html`<div class="ask" role="group" aria-label=${`Approval of ${visible(block.name)}`}>
    <p>${visible(message || `The agent wants to run ${block.name} with:`)}</p>
    <dl>${Object.entries(block.arguments ?? {}).map(([name, argument]) => html`<div><dt>${visible(name)}</dt><dd>${cut(pretty(argument), 400)}</dd></div>`)}</dl>
    <div class="buttons">
      <button class="primary" disabled=${isBusy} onClick=${() => send({ approved: true })}>${icon("check")}Approve</button>
      ${editable && html`<button disabled=${isBusy} onClick=${() => setMode("edit")}>${icon("pen")}Edit</button>`}
      <button class="bad" disabled=${isBusy} onClick=${() => setMode("deny")}>${icon("cross")}Deny</button>
    </div>
  </div>`;
}
