// What the caller's model calls took: today, this month, by model and day, and what budgets leave.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { count, money, visible, zoned } from "./format.js";
import { icon } from "./icons.js";
import { Header, Problem } from "./runs.js";

const DAYS = 31;
const DAY = 86_400_000;
const HEIGHT = 120; // pixels of the tallest bar
const KINDS = [
  ["tokens", "Tokens"],
  ["cost", "Cost"],
  ["requests", "Calls"],
];

const tokensOf = (row) => row.input_tokens + row.output_tokens;
const NUMBERS = { tokens: tokensOf, cost: (row) => Number(row.cost), requests: (row) => row.requests };
const WORDS = { tokens: (sum) => `${count(sum)} tokens`, cost: (sum) => money(sum) || "nothing", requests: (sum) => `${count(sum)} calls` };

function sumOf(rows) {
  const sum = { requests: 0, tokens: 0, cost: 0, unknown: 0 };
  for (const row of rows) {
    sum.requests += row.requests;
    sum.tokens += tokensOf(row);
    sum.cost += Number(row.cost);
    sum.unknown += row.unknown_cost;
  }
  return sum;
}

// What is not known is not free.
const priceOf = ({ cost, unknown }) => (cost === 0 && unknown > 0 ? "" : money(cost));

const amount = (number, unit) => (unit === "dollars" ? `$${Number(number).toLocaleString("en", { maximumFractionDigits: 4 })}` : count(number));

function Budget({ budget }) {
  const { words, unit, limit, spent, held, left, resets_at: resetsAt } = budget;
  const share = Number(limit) ? Math.min(1, (Number(spent) + Number(held)) / Number(limit)) : 1;
  const isSpent = Number(left) <= 0;
  return html`<li class=${isSpent ? "budget spent" : "budget"}>
    <b>${visible(words)}</b><span>${isSpent ? "spent" : `${amount(left, unit)} left`}</span>
    <progress max="1" value=${share} aria-label=${`Spent of ${words}`} />
    <small>${amount(spent, unit)} of ${amount(limit, unit)}${Number(held) > 0 ? `, ${amount(held, unit)} held by calls that run` : ""} · resets ${zoned(resetsAt)}</small>
  </li>`;
}

// One bar a day; a table beside it has the same numbers for those who do not see it.
function Chart({ rows, to, kind }) {
  const days = Array.from({ length: DAYS }, (_, n) => new Date(Date.parse(to) - (DAYS - 1 - n) * DAY).toISOString().slice(0, 10));
  const sums = new Map(days.map((day) => [day, 0]));
  for (const row of rows) if (sums.has(row.day)) sums.set(row.day, sums.get(row.day) + NUMBERS[kind](row));
  const most = Math.max(...sums.values(), 0);
  const bar = ([day, sum], n) => {
    const height = most ? Math.max((sum / most) * HEIGHT, sum ? 2 : 0) : 0;
    return html`<g key=${day}><title>${day}: ${WORDS[kind](sum)}</title>
      <rect class="ground" x=${n * 20} y="0" width="20" height=${HEIGHT} /><rect x=${n * 20 + 3} y=${HEIGHT - height} width="14" height=${height} rx="2" /></g>`;
  };
  return html`<figure class="chart">
    <figcaption>${DAYS} days, at most ${WORDS[kind](most)} a day</figcaption>
    <svg preserveAspectRatio="none" viewBox=${`0 0 ${DAYS * 20} ${HEIGHT}`} role="img" aria-label=${`${WORDS[kind](most)} on the busiest of ${DAYS} days`}>${[...sums].map(bar)}</svg>
    <p><span>${days[0]}</span><span>${to}</span></p>
  </figure>`;
}

const Sum = ({ name, sum }) => html`<div><dt>${name}</dt><dd>${sum.cost > 0 ? money(sum.cost) : `${count(sum.tokens)} tokens`}<small>${count(sum.requests)} calls · ${count(sum.tokens)} tokens${sum.unknown > 0 ? ` · ${count(sum.unknown)} without a price` : ""}</small></dd></div>`;

function Models({ rows }) {
  const models = [...Map.groupBy(rows, ({ model }) => model)].map(([model, all]) => [model, sumOf(all)]);
  models.sort(([, one], [, other]) => other.cost - one.cost || other.tokens - one.tokens);
  return html`<table class="list"><thead><tr><th>Model</th><th class="number">Calls</th><th class="number">Tokens</th><th class="number">Cost</th></tr></thead>
    <tbody>${models.map(([model, sum]) => html`<tr key=${model}><td>${visible(model)}</td><td class="number">${count(sum.requests)}</td><td class="number">${count(sum.tokens)}</td>
      <td class="number">${priceOf(sum)}${sum.unknown > 0 && html`<small>${count(sum.unknown)} without a price</small>`}</td></tr>`)}</tbody></table>`;
}

function Days({ rows }) {
  return html`<details class="days"><summary>By day and model${icon("chevron")}</summary>
    <table class="list"><thead><tr><th>Day (UTC)</th><th>Model</th><th class="number">Calls</th><th class="number">Tokens</th><th class="number">Cost</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr><td>${row.day}</td><td>${visible(row.model)}</td><td class="number">${count(row.requests)}</td><td class="number">${count(tokensOf(row))}</td><td class="number">${priceOf({ cost: Number(row.cost), unknown: row.unknown_cost })}</td></tr>`)}</tbody></table></details>`;
}

export function Usage({ onMenu }) {
  const [usage, setUsage] = useState(null);
  const [problem, setProblem] = useState(null);
  const [kind, setKind] = useState("tokens");
  useEffect(() => {
    const stop = new AbortController();
    const fail = (error) => error.name === "AbortError" || setProblem(error);
    ask(`/page/usage?days=${DAYS}`, { signal: stop.signal }).then(setUsage, fail);
    return () => stop.abort();
  }, []);
  let body = problem ? html`<${Problem} problem=${problem} />` : html`<div class="skeleton"><i /><i /><i /></div>`;
  if (usage) {
    const { rows, budgets, to, key, stored } = usage;
    const month = rows.filter(({ day }) => day.startsWith(to.slice(0, 7)));
    body = html`
      ${key.name && html`<p class="whose">Key <b>${visible(key.name)}</b> ${key.prefix && html`<span class="mono">${visible(key.prefix)}…</span>`}${key.expires_at ? ` holds until ${zoned(key.expires_at)}` : ""}</p>`}
      ${budgets.length > 0 && html`<ul class="budgets">${budgets.map((budget) => html`<${Budget} budget=${budget} />`)}</ul>`}
      <dl class="facts"><${Sum} name="Today" sum=${sumOf(rows.filter(({ day }) => day === to))} /><${Sum} name="This month" sum=${sumOf(month)} /></dl>
      ${rows.length === 0
        ? html`<div class="empty">${icon("chart")}<h2>No calls yet</h2><p>What models take for you is counted here by day, in UTC.</p></div>`
        : html`<div class="kinds" role="group" aria-label="What the bars show">${KINDS.map(([name, label]) => html`<button type="button" aria-pressed=${kind === name ? "true" : "false"} onClick=${() => setKind(name)}>${label}</button>`)}</div>
            <${Chart} rows=${rows} to=${to} kind=${kind} /><${Models} rows=${rows} /><${Days} rows=${rows} />`}
      ${!stored && html`<p class="none">This server keeps nothing in a database: it counts since it began.</p>`}`;
  }
  return html`<main class="view"><${Header} onMenu=${onMenu} title="Usage" /><div class="scroller"><div class="wide usage">${body}</div></div></main>`;
}
