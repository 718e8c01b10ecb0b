// A conversation: its turns, the run that writes the last one, and where a person answers.
import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js";
import { ask, follow, path } from "./api.js";
import { Composer } from "./composer.js";
import { Conversation, FINISHED } from "./fold.js";
import { visible } from "./format.js";
import { icon } from "./icons.js";
import { PlanCard } from "./plan.js";
import { AnswerTurn, UserTurn } from "./turn.js";
import { turnsOf } from "./turns.js";

const NEAR = 80; // pixels from the end within which the newest words are kept in sight
const MOST_RECALLED = 20; // runs of a conversation whose times and losses are looked up
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
  const recall = useCallback(async (conversation, signal) => {
    const { items } = await ask(`/page/runs?thread_id=${encodeURIComponent(threadId)}`, { signal });
    const over = items.filter(({ state, run_id }) => state !== "running" && state !== "queued");
    const look = ({ run_id }) => ask(path`/page/runs/${run_id}`, { signal }).catch(() => null);
    const runs = await Promise.all(over.slice(0, MOST_RECALLED).map(look));
    conversation.recall(runs.filter(Boolean));
    draw();
  }, [threadId]);
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
        if (loaded.run.state === "cancelled") conversation.state = FINISHED.cancelled;
      }
      if (loaded.messages.length || loaded.run) recall(conversation, stop.signal).catch(() => {});
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
    const { pending } = conversation;
    if (cutAt) conversation.cut(cutAt);
    conversation.begin(null, user);
    history.replaceState(null, "", `#/chat/${encodeURIComponent(threadId)}`);
    dispatchEvent(new Event("hashchange")); // it is new no more
    draw();
    say("The answer is being written.");
    try {
      const { run_id } = await ask(path`/page/threads/${threadId}/runs`, { method: "POST", body: { agent, ...body }, signal: stop.signal });
      conversation.runId = run_id;
      onChanged();
      await watch(conversation, run_id, stop.signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      conversation.fail(error);
      // Nothing was begun, so the same is sent again and the questions stay.
      conversation.unsent = () => start(body, { user, cutAt });
      conversation.pending = pending;
      say(`Failed: ${error.message}`);
      draw();
    }
  };
  const showEarlier = async (page, onLoaded) => {
    const { conversation, stop } = held.current;
    const loaded = await ask(`${path`/page/threads/${threadId}`}?page=${page}`, { signal: stop.signal });
    onLoaded();
    conversation.prepend(loaded.messages);
    setThread((before) => ({ ...before, page, has_more: loaded.has_more }));
    recall(conversation, stop.signal).catch(() => {});
  };
  const stopRun = () => {
    const { conversation } = held.current;
    if (conversation?.state === "running" && conversation.runId) {
      ask(path`/page/runs/${conversation.runId}/cancel`, { method: "POST" }).catch(() => {});
    }
  };
  return { conversation: held.current.conversation, thread, problem, start, stopRun, showEarlier, draw };
}

const Empty = ({ agent, onSend }) => html`<div class="empty">
  ${icon("mark")}<h2>${visible(agent.title || agent.name)}</h2><p dir="auto">${visible(agent.description ?? "")}</p>
  ${agent.suggestions?.length > 0 && html`<div class="suggestions">${agent.suggestions.map((words) => html`<button type="button" onClick=${() => onSend(words, [])}>${visible(words)}${icon("arrow")}</button>`)}</div>`}
  ${agent.tools.length > 0 && html`<p class="has">${agent.tools.map((tool) => html`<span class="chip" title=${visible(tool.description)}>${icon(tool.approval ? "hand" : "tool")}${visible(tool.name)}</span>`)}</p>`}
</div>`;

function Title({ thread, threadId, words, agent, onChanged }) {
  const [title, setTitle] = useState(null);
  const [isOpen, setOpen] = useState(false);
  const [fault, setFault] = useState("");
  const shown = title || thread?.title || words;
  useEffect(() => setTitle(null), [threadId]);
  useEffect(() => void (document.title = shown ? `${visible(shown).slice(0, 60)} · dragoman` : "dragoman"), [shown]);
  const save = async (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target).get("title").trim();
    try {
      if (wanted) setTitle((await ask(path`/page/threads/${threadId}`, { method: "PATCH", body: { title: wanted } })).title);
      setOpen(false);
      onChanged();
    } catch (error) {
      setFault(error.message);
    }
  };
  if (isOpen) {
    return html`<form class="rename" onSubmit=${save} onKeyDown=${(event) => event.key === "Escape" && setOpen(false)}>
      <input name="title" aria-label="Title" maxlength="200" autofocus defaultValue=${shown} /><button class="quiet" aria-label="Save the title">${icon("check")}</button>
      ${fault && html`<span class="wrong" role="alert">${visible(fault)}</span>`}</form>`;
  }
  return html`<h1 dir="auto">${visible(shown || agent.title || agent.name)}</h1>
    ${agent.titles && shown && html`<button type="button" class="quiet" title="Rename" aria-label="Rename the conversation" onClick=${() => setOpen(true)}>${icon("pen")}</button>`}`;
}

export function Chat({ threadId, isNew, agents, agentName, onAgent, onMenu, onChanged, say }) {
  const agent = agents.find(({ name }) => name === agentName) ?? agents[0];
  const { conversation, thread, problem, start, stopRun, showEarlier, draw } = useConversation(threadId, agent.name, { isNew, say, onChanged });
  const { past, live } = conversation ? turnsOf(conversation) : { past: [], live: null };
  const isEmpty = live?.length === 0 && past.length === 0;
  const first = past[0] ?? live?.[0];
  const used = (live?.findLast(({ model }) => model) ?? past.findLast(({ model }) => model))?.model ?? null;
  const [wanted, setWanted] = useState(null);
  const known = agent.models.find(({ name }) => name === used)?.name;
  const model = wanted ?? known ?? agent.models[0]?.name ?? null;
  const schemas = useMemo(() => Object.fromEntries(agent.tools.map((tool) => [tool.name, tool.input_schema])), [agent]);
  const scroller = useRef();
  const [isAway, setAway] = useState(false);
  const anchor = useRef(null); // pixels below what is seen, while earlier messages come above it
  const state = conversation?.state;
  const isRunning = state === "running";
  useEffect(() => (setWanted(null), setAway(false)), [threadId]);
  useEffect(() => {
    if (thread?.agent && thread.agent !== agent.name && agents.some(({ name }) => name === thread.agent)) onAgent(thread.agent);
  }, [thread]);
  useLayoutEffect(() => {
    const node = scroller.current;
    if (anchor.current !== null) node.scrollTop = node.scrollHeight - anchor.current;
    else if (node && !isAway) node.scrollTop = node.scrollHeight;
    anchor.current = null;
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
  // A run goes on once all its questions are answered.
  const onAnswer = (answer) => {
    const { answers, pending } = conversation;
    answers.set(answer.interrupt_id, answer);
    if (pending.every(({ id }) => answers.has(id))) start({ ...choice, resume: [...answers.values()] });
    else draw();
  };
  const onAgain = () => {
    if (conversation.unsent) return conversation.unsent();
    const last = live.findLast(({ role }) => role === "model");
    const isMade = conversation.messages.some(({ id }) => id === last?.id);
    return start({ ...choice, regenerate: isMade ? last.id : "" }, { cutAt: isMade ? last.id : null });
  };
  const onScroll = ({ target }) => setAway(target.scrollHeight - target.scrollTop - target.clientHeight > NEAR);
  const onEarlier = async () => {
    const node = scroller.current;
    setAway(true);
    await showEarlier((thread.page ?? 0) + 1, () => (anchor.current = node.scrollHeight - node.scrollTop)).catch(() => {});
  };
  // Drawn once: an event of the last answer draws nothing of those before it.
  const drawn = useMemo(() => past.map((turn) => turn.role === "user" ? html`<${UserTurn} key=${turn.id} turn=${turn} />` : html`<${AnswerTurn} key=${turn.id} turn=${turn} schemas=${schemas} />`), [past, schemas]);
  return html`<main class="chat">
    <header class="top">
      <button type="button" class="quiet phone-only" aria-label="Conversations" onClick=${onMenu}>${icon("menu")}</button>
      <${Title} thread=${thread} threadId=${threadId} words=${first?.text?.slice(0, 80) ?? ""} agent=${agent} onChanged=${onChanged} />
      <span class="space" />
      ${agents.length > 1 && html`<label class="picker"><span class="hidden">Agent</span><select value=${agent.name} disabled=${!isEmpty} onChange=${(event) => onAgent(event.target.value)}>${agents.map(({ name, title }) => html`<option value=${name}>${title || name}</option>`)}</select>${icon("chevron")}</label>`}
      ${live && !isEmpty && html`<a class="quiet" href=${`#/runs/${encodeURIComponent(threadId)}`} aria-label="Runs of this conversation">${icon("runs")}<span class="wide-only">Runs</span></a>`}
    </header>
    <div class="scroller" ref=${scroller} onScroll=${onScroll}><div class="column" role="log" aria-label="Conversation" aria-live="off" tabindex="0">
      ${problem && html`<div class="failed" role="alert">${icon("warn")}<div><b>${problem.message}</b></div><button type="button" onClick=${() => location.reload()}>Try again</button></div>`}
      ${!live && !problem && html`<div class="skeleton" aria-label="Loading"><i /><i /><i /></div>`}
      ${isEmpty && html`<${Empty} agent=${agent} onSend=${send} />`}
      ${thread?.has_more && html`<button type="button" class="more" onClick=${onEarlier}>Show earlier messages</button>`}
      ${drawn}
      ${live?.map((turn, n) =>
        turn.role === "user"
          ? html`<${UserTurn} key=${turn.id} turn=${turn} />`
          : html`<${AnswerTurn} key=${turn.id} turn=${turn} isLast=${n === live.length - 1} isBusy=${isRunning} schemas=${schemas} onAnswer=${onAnswer} onAgain=${onAgain} />`,
      )}
    </div></div>
    <div class="bottom"><div class="column">
      ${isAway && html`<button type="button" class="newest" aria-label="To the newest" onClick=${() => setAway(false)}>${icon("down")}</button>`}
      ${!isEmpty && used && known && model !== used && !isRunning && html`<${PlanCard} threadId=${threadId} agent=${agent.name} model=${model} used=${used} onBack=${() => setWanted(null)} />`}
      <${Composer} agent=${agent} model=${model} onModel=${setWanted} isRunning=${isRunning} isWaiting=${state === "waiting"} onSend=${send} onStop=${stopRun} threadId=${threadId} />
      <p class="fine">Models make mistakes.${agent.tools.some(({ approval }) => approval) ? html` Tools with ${icon("hand")} ask before they run.` : ""}</p>
    </div></div>
  </main>`;
}
