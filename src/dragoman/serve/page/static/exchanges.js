// The page of `dragoman proxy`: the recordings, and one with what its answer decodes to.
import { html, render, useEffect, useState } from "./vendor/preact-htm.js";
import { ask, path } from "./api.js";
import { count, pretty, visible } from "./format.js";
import { icon } from "./icons.js";
import { Problem, usePages } from "./runs.js";

const DRIFT = {
  fails: "cannot be decoded",
  type: "type is not known",
  dropped: "is not kept",
  kept: "is kept for its provider alone",
};

const Status = ({ status }) => html`<span class=${`pill ${status < 400 ? "success" : "error"}`}>${status}</span>`;

const Row = ({ exchange }) => html`<tr>
  <td><a href=${`#/${encodeURIComponent(exchange.id)}`}>${exchange.id}</a></td>
  ${exchange.error ? html`<td colspan="4">${visible(exchange.error)}</td>` : html`
  <td><${Status} status=${exchange.status} />${exchange.cut && html`<small>cut</small>`}</td>
  <td>${exchange.method} ${visible(exchange.url)}</td>
  <td>${visible(exchange.model)}<small>${exchange.wire}</small></td>
  <td class="number wide-only">${count(exchange.bytes)}</td>`}
</tr>`;

function List() {
  const { items, has_more, more, problem } = usePages("/page/exchanges");
  return html`
    ${problem && html`<${Problem} problem=${problem} />`}
    ${items?.length === 0 && html`<div class="empty">${icon("gate")}<h2>No recordings yet</h2><p>What programs ask through this proxy is recorded and listed here.</p></div>`}
    ${items?.length > 0 && html`<table class="list"><thead><tr><th>Id</th><th>Status</th><th>Asked</th><th>Model</th><th class="number wide-only">Bytes</th></tr></thead>
      <tbody>${items.map((exchange) => html`<${Row} key=${exchange.id} exchange=${exchange} />`)}</tbody></table>`}
    ${has_more && html`<button type="button" class="more" onClick=${more}>Show more</button>`}`;
}

const Block = ({ title, value, open }) => html`<details open=${open}><summary><h2>${title}</h2></summary><pre>${pretty(value)}</pre></details>`;

function Exchange({ id }) {
  const [exchange, setExchange] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => void ask(path`/page/exchanges/${id}`).then(setExchange, setProblem), [id]);
  if (problem) return html`<${Problem} problem=${problem} />`;
  if (!exchange) return html`<div class="skeleton"><i /><i /><i /></div>`;
  return html`
    <p><${Status} status=${exchange.status} /> ${exchange.method} ${visible(exchange.url)} <small>${exchange.wire}</small></p>
    ${exchange.drift?.length > 0 && html`<section><h2>Not known</h2><ul>${exchange.drift.map((found) => html`<li><code>${visible(found.what)}</code> ${DRIFT[found.kind]}</li>`)}</ul></section>`}
    <${Block} title="Request" value=${exchange.request} open />
    ${exchange.decoded && html`<${Block} title="Decoded" value=${exchange.decoded} open />`}
    <${Block} title="Answer" value=${exchange.answer} open=${!exchange.decoded} />
    <${Block} title="Headers" value=${exchange.headers} />`;
}

const readId = () => decodeURIComponent(location.hash.slice(2));

function App() {
  const [id, setId] = useState(readId);
  useEffect(() => addEventListener("hashchange", () => setId(readId())), []);
  return html`<main class="view">
    <header class="top">${id && html`<a class="quiet" href="#/" aria-label="Back">${icon("back")}</a>`}<h1>${id ? `Recording ${visible(id)}` : "Recordings"}</h1></header>
    <div class="scroller"><div class="wide">${id ? html`<${Exchange} key=${id} id=${id} />` : html`<${List} />`}</div></div>
  </main>`;
}

render(html`<${App} />`, document.getElementById("app"));
