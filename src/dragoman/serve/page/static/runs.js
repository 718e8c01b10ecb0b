// The runs of a conversation, or all of them.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { clock, count, money, visible } from "./format.js";
import { icon } from "./icons.js";

const ASK_AGAIN = 2000; // milliseconds between two looks at a list in which something goes on

export const STATES = {
  queued: "queued",
  running: "running",
  success: "done",
  pending: "waits for an answer",
  cancelled: "stopped",
  error: "failed",
  interrupted: "interrupted",
};

export const Header = ({ onMenu, title, back, children }) => html`<header class="top">
  <button type="button" class="quiet phone-only" aria-label="Conversations" onClick=${onMenu}>${icon("menu")}</button>
  ${back && html`<a class="quiet" href=${back} aria-label="Back">${icon("back")}</a>`}
  <h1>${title}</h1>${children}
</header>`;

// Loads a list page by page. Its first page is asked again while something in it goes on.
export function usePages(url) {
  const [list, setList] = useState({ items: null, page: 0, has_more: false });
  const [problem, setProblem] = useState(null);
  const isLive = list.page === 0 && list.items?.some(({ state }) => state === "running" || state === "queued");
  const load = (page) =>
    ask(`${url}${url.includes("?") ? "&" : "?"}page=${page}`).then(
      (found) => (setProblem(null), setList((before) => ({ ...found, items: page ? [...before.items, ...found.items] : found.items }))),
      setProblem,
    );
  useEffect(() => void load(0), [url]);
  useEffect(() => {
    const timer = isLive && setInterval(() => load(0), ASK_AGAIN);
    return () => clearInterval(timer);
  }, [url, isLive]);
  return { ...list, problem, more: () => load(list.page + 1) };
}

export const Problem = ({ problem }) => html`<div class="failed" role="alert">${icon("warn")}<div><b>${problem.message}</b></div></div>`;

const Row = ({ run }) => html`<tr>
  <td class="whole"><a href=${`#/run/${encodeURIComponent(run.run_id)}`}>${clock(run.started_at)}</a></td>
  <td><span class=${`pill ${run.state}`}>${STATES[run.state] ?? run.state}</span></td>
  <td>${visible(run.agent ?? "")}</td>
  <td class="number">${run.tokens === null || run.tokens === undefined ? "" : count(run.tokens)}</td>
  <td class="number">${money(run.cost)}</td>
  <td class="number wide-only">${count(run.end)}</td>
</tr>`;

export function Runs({ threadId, onMenu }) {
  const { items, has_more, more, problem } = usePages(threadId ? `/page/runs?thread_id=${encodeURIComponent(threadId)}` : "/page/runs");
  return html`<main class="view">
    <${Header} onMenu=${onMenu} title=${threadId ? "Runs of this conversation" : "All runs"} back=${threadId && `#/chat/${encodeURIComponent(threadId)}`} />
    <div class="scroller"><div class="wide">
      ${problem && html`<${Problem} problem=${problem} />`}
      ${!items && !problem && html`<div class="skeleton"><i /><i /><i /></div>`}
      ${items?.length === 0 && html`<div class="empty">${icon("runs")}<h2>No runs yet</h2><p>Each answer of an agent is a run. Its events are kept here.</p></div>`}
      ${items?.length > 0 && html`<table class="list"><thead><tr><th>Begun</th><th>State</th><th>Agent</th><th class="number">Tokens</th><th class="number">Cost</th><th class="number wide-only">Events</th></tr></thead>
        <tbody>${items.map((run) => html`<${Row} key=${run.run_id} run=${run} />`)}</tbody></table>`}
      ${has_more && html`<button type="button" class="more" onClick=${more}>Show more</button>`}
    </div></div>
  </main>`;
}
