// A conversation: its turns, the run that writes the last one, and where a person answers.
import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js";
import { ask, follow, path } from "./api.js";
import { Composer } from "./composer.js";
import { Conversation } from "./fold.js";
import { visible } from "./format.js";
import { icon } from "./icons.js";
import { PlanCard } from "./plan.js";
import { AnswerTurn, UserTurn } from "./turn.js";
import { turnsOf } from "./turns.js";

const NEAR = 80; // pixels from the end within which the newest words are kept in sight
const SPOKEN = { done: "The answer is complete.", stopped: "Stopped.", waiting: "The agent needs your answer." };

// Draws at most once a frame, however many events come.
function useFrames() {
  const [, setFrame] = useState(0);
  const pending = useRef(0);
  return useCallback(() => {
    pending.current ||= requestAnimationFrame(() => {
      pending.current = 0;
      setFrame((frame) => frame + 1);
    });
  }, []);
}

// Loads a thread and follows its runs. Returns the conversation and what can be done with it.
function useConversation(threadId, agent, { isNew, say, onChanged }) {
  const draw = useFrames();
  const held = useRef({ conversation: null });
  const [thread, setThread] = useState(null);
  const [problem, setProblem] = useState(null);
  const watch = useCallback(async (conversation, runId, signal) => {
    const onLost = (tries) => ((conversation.lost = tries), draw());
    try {
      for await (const { name, value } of follow(runId, { signal, onLost })) {
        conversation.add(name, value);
        draw();
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      conversation.fail(error);
    }
    if (signal.aborted) return;
    say(conversation.error ? `Failed: ${conversation.error.message}` : (SPOKEN[conversation.state] ?? ""));
    draw();
    onChanged();
  }, []);
  useEffect(() => {
    const stop = new AbortController();
    held.current = { conversation: null, stop };
    setThread(null);
    setProblem(null);
    const show = (loaded) => {
      const conversation = new Conversation(loaded);
      held.current.conversation = conversation;
      setThread(loaded);
      if (loaded.run?.state === "running" || loaded.run?.state === "queued") {
        conversation.begin(loaded.run.run_id);
        watch(conversation, loaded.run.run_id, stop.signal);
      } else if (loaded.run) {
        conversation.runId = loaded.run.run_id;
        const recall = (run) => (conversation.recall(run), draw());
        ask(path`/page/runs/${loaded.run.run_id}`, { signal: stop.signal }).then(recall, () => {});
      }
      draw();
    };
    const empty = { messages: [], pending: [], title: "" };
    if (isNew) show(empty); // nobody has heard of it yet
    else {
      ask(path`/page/threads/${threadId}`, { signal: stop.signal }).then(show, (error) => {
        if (error.name === "AbortError") return;
        if (error.status === 404) show(empty);
        else setProblem(error);
      });
    }
    return () => stop.abort();
  }, [threadId]);
  const start = async (body, { user = null, cutAt = null } = {}) => {
    const { conversation, stop } = held.current;
    if (cutAt) conversation.cut(cutAt);
    conversation.begin(null, user);
    history.replaceState(null, "", `#/chat/${encodeURIComponent(threadId)}`);
    draw();
    say("The answer is being written.");
    try {
      const { run_id } = await ask(path`/page/threads/${threadId}/runs`, { method: "POST", body: { agent, ...body }, signal: stop.signal });
      conversation.runId = run_id;
      onChanged();
      await watch(conversation, run_id, stop.signal);
    } catch (error) {
      if (error.name !== "AbortError") conversation.fail(error);
      draw();
    }
  };
  const stopRun = () => {
    const { conversation } = held.current;
    if (conversation?.state === "running" && conversation.runId) {
      ask(path`/page/runs/${conversation.runId}/cancel`, { method: "POST" }).catch(() => {});
    }
  };
  return { conversation: held.current.conversation, thread, problem, start, stopRun };
}

const Empty = ({ agent, onSend }) => html`<div class="empty">
  ${icon("mark")}<h2>${visible(agent.title || agent.name)}</h2><p>${visible(agent.description ?? "")}</p>
  ${agent.suggestions?.length > 0 && html`<div class="suggestions">${agent.suggestions.map((words) => html`<button type="button" onClick=${() => onSend(words, [])}>${visible(words)}${icon("arrow")}</button>`)}</div>`}
  ${agent.tools.length > 0 && html`<p class="has">${agent.tools.map((tool) => html`<span class="chip" title=${tool.description}>${icon(tool.approval ? "hand" : "tool")}${visible(tool.name)}</span>`)}</p>`}
</div>`;

function Title({ thread, threadId, words, agent, onChanged }) {
  const [title, setTitle] = useState(null);
  const [isOpen, setOpen] = useState(false);
  const shown = title || thread?.title || words;
  useEffect(() => setTitle(null), [threadId]);
  useEffect(() => void (document.title = shown ? `${shown.slice(0, 60)} · dragoman` : "dragoman"), [shown]);
  const save = async (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target).get("title").trim();
    if (wanted) setTitle((await ask(path`/page/threads/${threadId}`, { method: "PATCH", body: { title: wanted } })).title);
    setOpen(false);
    onChanged();
  };
  if (isOpen) {
    return html`<form class="rename" onSubmit=${save} onKeyDown=${(event) => event.key === "Escape" && setOpen(false)}>
      <input name="title" aria-label="Title" maxlength="200" autofocus value=${shown} /><button class="quiet" aria-label="Save the title">${icon("check")}</button></form>`;
  }
  return html`<h1>${visible(shown || agent.title || agent.name)}</h1>
    ${agent.titles && shown && html`<button type="button" class="quiet" title="Rename" aria-label="Rename the conversation" onClick=${() => setOpen(true)}>${icon("pen")}</button>`}`;
}

export function Chat({ threadId, isNew, agents, agentName, onAgent, onMenu, onChanged, say }) {
  const agent = agents.find(({ name }) => name === agentName) ?? agents[0];
  const { conversation, thread, problem, start, stopRun } = useConversation(threadId, agent.name, { isNew, say, onChanged });
  const turns = conversation ? turnsOf(conversation) : null;
  const used = turns?.findLast(({ model }) => model)?.model ?? null;
  const [wanted, setWanted] = useState(null);
  const known = agent.models.find(({ name }) => name === used)?.name;
  const model = wanted ?? known ?? agent.models[0]?.name ?? null;
  const schemas = useMemo(() => Object.fromEntries(agent.tools.map((tool) => [tool.name, tool.input_schema])), [agent]);
  const scroller = useRef();
  const [isAway, setAway] = useState(false);
  const state = conversation?.state;
  const isRunning = state === "running";
  useEffect(() => (setWanted(null), setAway(false)), [threadId]);
  useEffect(() => {
    if (thread?.agent && thread.agent !== agent.name && agents.some(({ name }) => name === thread.agent)) onAgent(thread.agent);
  }, [thread]);
  useLayoutEffect(() => {
    if (scroller.current && !isAway) scroller.current.scrollTop = scroller.current.scrollHeight;
  });
  useEffect(() => {
    const onKey = (event) => event.key === "Escape" && stopRun();
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [threadId]);
  const choice = model && model !== agent.models[0]?.name ? { model } : {};
  const send = (text, files) => {
    setAway(false);
    const parts = files.map(({ media_type, data, name }) => ({ type: "data", media_type, data, name }));
    const user = { id: "guess", role: "user", content: [...parts, ...(text ? [{ type: "text", text }] : [])] };
    start({ ...choice, ...(text ? { text } : {}), ...(files.length ? { files } : {}) }, { user });
  };
  const onAnswer = (answer) => start({ ...choice, resume: [answer] });
  const onAgain = () => {
    const last = turns.findLast(({ role }) => role === "model");
    const isMade = conversation.messages.some(({ id }) => id === last?.id);
    start({ ...choice, regenerate: isMade ? last.id : "" }, { cutAt: isMade ? last.id : null });
  };
  const onScroll = ({ target }) => setAway(target.scrollHeight - target.scrollTop - target.clientHeight > NEAR);
  let before = null;
  return html`<main class="chat">
    <header class="top">
      <button type="button" class="quiet phone-only" aria-label="Conversations" onClick=${onMenu}>${icon("menu")}</button>
      <${Title} thread=${thread} threadId=${threadId} words=${turns?.[0]?.text?.slice(0, 80) ?? ""} agent=${agent} onChanged=${onChanged} />
      <span class="space" />
      ${agents.length > 1 && html`<label class="picker"><span class="hidden">Agent</span><select value=${agent.name} disabled=${turns?.length > 0} onChange=${(event) => onAgent(event.target.value)}>${agents.map(({ name, title }) => html`<option value=${name}>${title || name}</option>`)}</select>${icon("chevron")}</label>`}
      ${turns?.length > 0 && html`<a class="quiet" href=${`#/runs/${encodeURIComponent(threadId)}`} aria-label="Runs of this conversation">${icon("runs")}<span class="wide-only">Runs</span></a>`}
    </header>
    <div class="scroller" ref=${scroller} onScroll=${onScroll}><div class="column" role="log" aria-label="Conversation" aria-live="off" tabindex="0">
      ${problem && html`<div class="failed" role="alert">${icon("warn")}<div><b>${problem.message}</b></div><button type="button" onClick=${() => location.reload()}>Try again</button></div>`}
      ${!turns && !problem && html`<div class="skeleton" aria-label="Loading"><i /><i /><i /></div>`}
      ${turns?.length === 0 && html`<${Empty} agent=${agent} onSend=${send} />`}
      ${turns?.map((turn, n) => {
        if (turn.role === "user") return html`<${UserTurn} key=${turn.id} turn=${turn} />`;
        const earlier = before;
        before = turn.model ?? before;
        return html`<${AnswerTurn} key=${turn.id} turn=${turn} before=${earlier} isLast=${n === turns.length - 1} isBusy=${isRunning} schemas=${schemas} onAnswer=${onAnswer} onAgain=${onAgain} />`;
      })}
    </div></div>
    <div class="bottom"><div class="column">
      ${isAway && html`<button type="button" class="newest" aria-label="To the newest" onClick=${() => setAway(false)}>${icon("down")}</button>`}
      ${turns?.length > 0 && used && known && model !== used && !isRunning && html`<${PlanCard} threadId=${threadId} agent=${agent.name} model=${model} used=${used} onBack=${() => setWanted(null)} />`}
      <${Composer} agent=${agent} model=${model} onModel=${setWanted} isRunning=${isRunning} isWaiting=${state === "waiting"} onSend=${send} onStop=${stopRun} threadId=${threadId} />
      <p class="fine">Models make mistakes.${agent.tools.some(({ approval }) => approval) ? html` Tools with ${icon("hand")} ask before they run.` : ""}</p>
    </div></div>
  </main>`;
}
