// One run: what it took, a waterfall of its model calls and tools, and its events.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ask, path } from "./api.js";
import { count, duration, money, pretty, shortModel, tokens, visible } from "./format.js";
import { icon } from "./icons.js";
import { Events } from "./run_events.js";
import { Header, Problem, STATES } from "./runs.js";
import { Waterfall } from "./waterfall.js";

const ASK_AGAIN = 800; // milliseconds between two looks at a run that goes on

function useRun(runId) {
  const [run, setRun] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    const later = (wait) => setTimeout(() => stop.signal.aborted || load(), wait);
    const load = async () => {
      const began = performance.now();
      try {
        const found = await ask(path`/page/runs/${runId}`, { signal: stop.signal });
        setRun(found);
        setProblem(null);
        // A long run takes long to read: it is asked less often.
        if (found.state === "running" || found.state === "queued") later(Math.max(ASK_AGAIN, 5 * (performance.now() - began)));
      } catch (error) {
        if (error.name === "AbortError") return;
        setProblem(error);
        if (error.status !== 404) later(4 * ASK_AGAIN);
      }
    };
    load();
    return () => stop.abort();
  }, [runId]);
  return { run, problem };
}

const Fact = ({ name, value, more }) => value && html`<div><dt>${name}</dt><dd>${value}${more && html`<small>${more}</small>`}</dd></div>`;

function Facts({ run }) {
  const { usage, cost, models = [], seconds, spans } = run;
  const losses = spans.flatMap((span) => span.losses ?? []).filter((loss) => !loss.is_minor);
  return html`<dl class="facts">
    <${Fact} name="Took" value=${duration((seconds ?? 0) * 1000)} />
    <${Fact} name="Tokens" value=${usage && count(tokens(usage))} more=${usage && `${count(usage.input_tokens)} in · ${count(usage.output_tokens)} out`} />
    <${Fact} name="Cost" value=${money(cost)} />
    <${Fact} name=${models.length > 1 ? "Models" : "Model"} value=${models.map(shortModel).join(", ")} />
    <${Fact} name="Left out" value=${losses.length > 0 && count(losses.length)} more=${[...new Set(losses.map(({ what }) => what))].join(", ")} />
  </dl>`;
}

const Block = ({ title, value }) => (value === undefined || value === null ? null : html`<h3>${title}</h3><pre tabindex="0">${pretty(value).slice(0, 20_000)}</pre>`);

function Detail({ span, onClose }) {
  const rows = {
    provider: span.provider,
    "ended with": span.finish_reason,
    "first token": span.first !== null && span.first !== undefined && duration((span.first - span.start) * 1000),
    waited: span.kind === "tool" && span.start !== null && duration((span.start - span.asked) * 1000),
    ...Object.fromEntries(Object.entries(span.usage ?? {}).map(([name, number]) => [name.replaceAll("_", " "), count(number)])),
    cost: money(span.cost),
    "taken back": span.dropped,
  };
  return html`<section class="detail" aria-label="Details">
    <header><h2>${visible(span.kind === "model" ? (span.model ?? span.name) : span.name)}</h2><button type="button" class="quiet" aria-label="Close the details" onClick=${onClose}>${icon("cross")}</button></header>
    <dl>${Object.entries(rows).map(([name, value]) => value && html`<div><dt>${name}</dt><dd>${visible(value)}</dd></div>`)}</dl>
    ${span.losses?.length > 0 && html`<h3>Left out of its request</h3><ul>${span.losses.map((loss) => html`<li><b>${visible(loss.which || loss.what)}</b>: ${visible(loss.why ?? "")}</li>`)}</ul>`}
    <${Block} title="Arguments" value=${span.arguments} />
    <${Block} title="Changed by a person to" value=${span.edited} />
    <${Block} title=${span.is_error ? "Error" : "Result"} value=${span.result} />
    <${Block} title="Error" value=${typeof span.error === "object" ? span.error?.message : span.error} />
    ${span.progress?.length > 0 && html`<h3>Progress</h3><ol class="steps">${span.progress.map((step) => html`<li><span>${duration(step.at * 1000)}</span>${visible(step.message ?? "")} ${step.total ? `${count(step.done)} of ${count(step.total)}` : ""}</li>`)}</ol>`}
  </section>`;
}

const TABS = [
  ["timeline", "Timeline"],
  ["events", "Events"],
];

export function Run({ runId, onMenu }) {
  const { run, problem } = useRun(runId);
  const [chosen, setChosen] = useState(null);
  const [tab, setTab] = useState("timeline");
  const title = html`Run <span class="mono">${runId.slice(0, 8)}</span>`;
  const back = run?.thread_id && `#/chat/${encodeURIComponent(run.thread_id)}`;
  const onKey = (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const next = TABS.find(([name]) => name !== tab)[0];
    setTab(next);
    event.currentTarget.querySelector(`[data-tab=${next}]`).focus();
  };
  let body = html`<div class="skeleton"><i /><i /><i /></div>`;
  if (problem?.status === 404) body = html`<div class="empty">${icon("warn")}<h2>${problem.message}</h2><p>Logs are forgotten after a while; the conversation itself is kept.</p></div>`;
  else if (problem && !run) body = html`<${Problem} problem=${problem} />`;
  else if (run) {
    body = html`<${Facts} run=${run} />
      ${run.error && html`<div class="failed" role="alert">${icon("warn")}<div><b>${visible(run.error.message)}</b></div></div>`}
      <div class="tabs" role="tablist" aria-label="Views of the run" onKeyDown=${onKey}>${TABS.map(([name, label]) => html`<button type="button" role="tab" id=${`tab-${name}`} data-tab=${name} aria-selected=${tab === name ? "true" : "false"} aria-controls="tab-panel" tabindex=${tab === name ? 0 : -1} onClick=${() => setTab(name)}>${label}</button>`)}</div>
      <div role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${tab}`}>
        ${tab === "timeline"
          ? html`<div class=${chosen === null ? "spans" : "spans with-detail"}><${Waterfall} spans=${run.spans} seconds=${run.seconds} isOver=${run.state !== "running"} chosen=${chosen} onChoose=${setChosen} />
              ${chosen !== null && run.spans[chosen] && html`<${Detail} span=${run.spans[chosen]} onClose=${() => setChosen(null)} />`}</div>`
          : html`<${Events} runId=${runId} />`}
      </div>`;
  }
  return html`<main class="view"><${Header} onMenu=${onMenu} title=${title} back=${back}>${run && html`<span class=${`pill ${run.state}`}>${STATES[run.state] ?? run.state}</span>`}<//>
    <div class="scroller"><div class="wide">${body}</div></div></main>`;
}
