// What another model would get of a conversation, told before it is sent.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { count, shortModel, visible } from "./format.js";
import { icon } from "./icons.js";

const WORDS = { lost: "is left out", repaired: "is changed" };

export function PlanCard({ threadId, agent, model, used, onBack }) {
  const [plan, setPlan] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    setPlan(null);
    setProblem("");
    ask("/page/plan", { method: "POST", body: { thread_id: threadId, agent, model }, signal: stop.signal }).then(setPlan, (error) => {
      if (error.name !== "AbortError") setProblem(error.message);
    });
    return () => stop.abort();
  }, [threadId, agent, model]);
  const groups = plan?.groups?.filter((group) => !group.is_minor) ?? [];
  let words = "Looking at what it would get …";
  if (plan) words = groups.length ? "Not all of this conversation goes along:" : "All of this conversation goes along.";
  return html`<section class="plan" aria-label="What the other model gets" aria-live="polite">
    <header>${icon(groups.length ? "scissors" : "arrow")}<b>${visible(shortModel(used))} → ${visible(shortModel(model))}</b>
      ${plan?.tokens && html`<span>${count(plan.tokens.count ?? plan.tokens)} tokens</span>`}
      <button type="button" class="quiet" onClick=${onBack}>${icon("undo")}Back</button></header>
    <p>${problem ? visible(problem) : words}</p>
    ${groups.length > 0 && html`<ul>${groups.map((group) => html`<li><b>${visible(group.which || group.what)}</b> ${WORDS[group.kind] ?? ""}: ${visible(group.why ?? "")}
      ${group.messages?.length > 0 && html`<small> (${count(group.messages.length)} ${group.messages.length === 1 ? "message" : "messages"})</small>`}</li>`)}</ul>`}
  </section>`;
}
