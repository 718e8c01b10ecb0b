// Calls of the gateway: who was asked, what came of it, and what was left out.
import { html } from "./vendor/preact-htm.js";
import { clock, count, duration, money, tokens, visible } from "./format.js";
import { icon } from "./icons.js";
import { Header, Problem, usePages } from "./runs.js";

const Row = ({ call }) => html`<tr>
  <td class="whole">${clock(call.at)}</td>
  <td>${visible(call.model ?? "")}<small class="whole">${call.api.replaceAll("_", " ")}</small></td>
  <td><span class=${`pill ${call.status < 400 ? "success" : "error"}`}>${call.status}</span>${call.error && html`<small>${visible(call.error)}</small>`}</td>
  <td class="number">${call.usage ? count(tokens(call.usage)) : ""}</td>
  <td class="number">${money(call.cost)}</td>
  <td class="number wide-only">${duration(call.seconds * 1000)}<small>${call.first_seconds === null ? "" : `first ${duration(call.first_seconds * 1000)}`}</small></td>
  <td class="wide-only">${call.losses?.length > 0 && html`<details><summary>${count(call.losses.length)}${icon("chevron")}</summary><ul>${call.losses.map((loss) => html`<li><b>${visible(loss.which || loss.what)}</b>: ${visible(loss.why ?? "")}</li>`)}</ul></details>`}</td>
</tr>`;

export function Calls({ onMenu, title }) {
  const { items, has_more, more, problem } = usePages("/page/calls");
  return html`<main class="view">
    <${Header} onMenu=${onMenu} title=${title} />
    <div class="scroller"><div class="wide">
      ${problem && html`<${Problem} problem=${problem} />`}
      ${items?.length === 0 && html`<div class="empty">${icon("gate")}<h2>No calls yet</h2><p>Each request of a client to this server's model APIs is listed here.</p></div>`}
      ${items?.length > 0 && html`<table class="list"><thead><tr><th>At</th><th>Model</th><th>Status</th><th class="number">Tokens</th><th class="number">Cost</th><th class="number wide-only">Took</th><th class="wide-only">Left out</th></tr></thead>
        <tbody>${items.map((call) => html`<${Row} key=${call.id} call=${call} />`)}</tbody></table>`}
      ${items?.length > 0 && html`<p class="none">The latest 1,000 calls that this process of the server answered since it began.</p>`}
      ${has_more && html`<button type="button" class="more" onClick=${more}>Show more</button>`}
    </div></div>
  </main>`;
}
