// One turn of a conversation: what the user said, or what the model and its tools answered.
import { html } from "./vendor/preact-htm.js";
import { count, duration, money, shortModel, tokens, visible } from "./format.js";
import { icon } from "./icons.js";
import { Copy, File, Text, Thinking } from "./text.js";
import { Tool } from "./tool.js";

const VIEWS = { text: Text, thinking: Thinking, file: File };

export const UserTurn = ({ turn }) => html`<article class="user" aria-label="You">
  ${turn.files.map((file) => html`<${File} ...${file} />`)}
  ${turn.text && html`<div class="said" dir="auto">${visible(turn.text)}</div>`}
</article>`;

function Losses({ losses }) {
  const shown = losses.filter((loss) => !loss.is_minor);
  if (!shown.length) return null;
  return html`<details class="losses">
    <summary>${icon("scissors")}${count(shown.length)} left out${icon("chevron")}</summary>
    <ul>${shown.map((loss) => html`<li><b>${visible(loss.which || loss.what)}</b>: ${visible(loss.why ?? "")}</li>`)}</ul>
  </details>`;
}

function Meta({ turn, onAgain, isBusy }) {
  const { usage, cost, model, milliseconds, runId } = turn;
  const text = turn.blocks.filter(({ kind }) => kind === "text").map((block) => block.text).join("\n\n");
  return html`<footer class="meta">
    ${text && html`<${Copy} text=${text} label="Copy the answer" />`}
    ${onAgain && html`<button type="button" class="quiet" disabled=${isBusy} onClick=${onAgain} title="Make this answer anew" aria-label="Make this answer anew">${icon("again")}</button>`}
    ${runId && html`<a class="quiet" href=${`#/run/${encodeURIComponent(runId)}`} title="What happened" aria-label="What happened in this run">${icon("runs")}</a>`}
    <span>${visible(shortModel(model))}</span>
    ${tokens(usage) > 0 && html`<span title=${`${count(usage.input_tokens)} in, ${count(usage.output_tokens)} out`}>${count(tokens(usage))} tokens</span>`}
    ${cost !== null && html`<span>${money(cost)}</span>`}
    ${milliseconds && html`<span>${duration(milliseconds)}</span>`}
    <${Losses} losses=${turn.losses} />
  </footer>`;
}

function Failure({ error, onAgain }) {
  const wait = error.retryAfter;
  return html`<div class="failed" role="alert">
    ${icon("warn")}
    <div><b>${visible(error.message)}</b>${wait ? html`<p>The provider takes requests again in ${Math.ceil(wait)} s.</p>` : ""}</div>
    ${onAgain && html`<button type="button" onClick=${onAgain}>${icon("again")}Try again</button>`}
  </div>`;
}

export function AnswerTurn({ turn, isLast, isBusy, onAnswer, onAgain, schemas }) {
  const { before } = turn; // the model of the answer before
  const hasChanged = before && turn.model && before !== turn.model;
  const isWaiting = turn.state === "running" && !turn.blocks.some(({ kind, isOpen }) => isOpen && kind !== "tool");
  return html`<article class="answer" aria-label="Answer" aria-busy=${turn.state === "running" ? "true" : "false"}>
    ${hasChanged && html`<p class="switched">${icon("arrow")}now ${visible(turn.model)}</p>`}
    ${turn.blocks.map((block) =>
      block.kind === "tool"
        ? html`<${Tool} key=${block.key} block=${{ ...block, schema: schemas[block.name] }} isBusy=${isBusy} onAnswer=${isLast ? onAnswer : null} />`
        : html`<${VIEWS[block.kind]} key=${block.key} ...${block} />`,
    )}
    ${isWaiting && html`<p class="wait"><i /><i /><i /><span class="hidden">The model is at work</span></p>`}
    ${turn.lost > 0 && html`<p class="lost" role="status">The connection is lost; trying again (${turn.lost}) …</p>`}
    ${turn.state === "stopped" && html`<p class="stopped">${icon("stop")}Stopped</p>`}
    ${turn.error && html`<${Failure} error=${turn.error} onAgain=${isLast ? onAgain : null} />`}
    ${turn.state !== "running" && html`<${Meta} turn=${turn} isBusy=${isBusy} onAgain=${isLast && !turn.error ? onAgain : null} />`}
  </article>`;
}
