// The events of a run as they were stored, page by page, with a filter.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ask, path } from "./api.js";
import { count, duration, pretty, visible } from "./format.js";
import { icon } from "./icons.js";

const PAGE = 500;
const LONGEST_LINE = 140;

function Row({ n, event, first }) {
  const { type, at, ...rest } = event;
  const milliseconds = at && first ? new Date(at) - new Date(first) : null;
  return html`<tr>
    <td class="number">${count(n)}</td>
    <td class="number wide-only">${milliseconds === null ? "" : duration(milliseconds)}</td>
    <td><span class=${`type ${type.split("_")[0]}`}>${type}</span></td>
    <td><details><summary>${visible(JSON.stringify(rest)).slice(0, LONGEST_LINE)}</summary><pre tabindex="0">${pretty(event).slice(0, 50_000)}</pre></details></td>
  </tr>`;
}

export function Events({ runId }) {
  const [items, setItems] = useState(null);
  const [end, setEnd] = useState(0);
  const [next, setNext] = useState(0); // not all events are shown, so that their count does not say it
  const [words, setWords] = useState("");
  const load = async (from) => {
    const found = await ask(`${path`/page/runs/${runId}/events`}?from=${from}&to=${from + PAGE}&format=json`);
    setItems((before) => [...(from ? before : []), ...found.items]);
    setEnd(found.end);
    setNext(Math.min(from + PAGE, found.end));
  };
  useEffect(() => void load(0).catch(() => setItems([])), [runId]);
  if (!items) return html`<div class="skeleton"><i /><i /></div>`;
  const shown = items.filter(({ event }) => !words || JSON.stringify(event).toLowerCase().includes(words.toLowerCase()));
  return html`<div class="events">
    <label class="search">${icon("search")}<span class="hidden">Filter the events</span><input type="search" placeholder="Filter" value=${words} onInput=${(event) => setWords(event.target.value)} /></label>
    <table class="list"><thead><tr><th class="number">#</th><th class="number wide-only">at</th><th>type</th><th>what</th></tr></thead>
      <tbody>${shown.map(({ n, event }) => html`<${Row} key=${n} n=${n} event=${event} first=${items[0]?.event.at} />`)}</tbody></table>
    ${!shown.length && html`<p class="none">Nothing is found.</p>`}
    ${next < end && html`<button type="button" class="more" onClick=${() => load(next)}>Show more of ${count(end)}</button>`}
  </div>`;
}
