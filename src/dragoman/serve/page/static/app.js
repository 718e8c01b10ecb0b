// The page: who is signed in, which view is open, and what stands around it.
import { html, render, useCallback, useEffect, useState } from "./vendor/preact-htm.js";
import { ask } from "./api.js";
import { Calls } from "./calls.js";
import { Chat } from "./chat.js";
import { icon } from "./icons.js";
import { Run } from "./run.js";
import { Runs } from "./runs.js";
import { Sidebar, useThreads } from "./sidebar.js";
import { Usage } from "./usage.js";

// crypto.randomUUID is there only over HTTPS and on this machine.
const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const open = (hash) => void (location.hash = hash);
const newHash = () => `#/chat/${newId()}/new`;
const openNew = () => open(newHash());

function readHash() {
  const [, view = "", id = "", more = ""] = location.hash.split("/");
  return { view, id: decodeURIComponent(id), isNew: more === "new" };
}

function useHash() {
  const [place, setPlace] = useState(readHash);
  useEffect(() => {
    const onChange = () => setPlace(readHash());
    addEventListener("hashchange", onChange);
    // It may have changed since the first drawing, when nobody listened yet.
    if (!readHash().view) history.replaceState(null, "", newHash());
    onChange();
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return place;
}

function SignIn({ onSignedIn }) {
  const [key, setKey] = useState("");
  const [wrong, setWrong] = useState("");
  const [isBusy, setBusy] = useState(false);
  const signIn = async (event) => {
    event.preventDefault();
    setBusy(true);
    setWrong("");
    try {
      onSignedIn(await ask("/page/session", { method: "POST", body: { key } }));
    } catch (error) {
      setWrong(error.retryAfter ? `${error.message} Try again in ${Math.ceil(error.retryAfter)} s.` : error.message);
      setBusy(false);
    }
  };
  return html`<main class="sign-in"><form onSubmit=${signIn}>
    ${icon("mark")}<h1>dragoman</h1><p>This server asks for a key. Whoever runs it has one.</p>
    <label><span>Key</span><input type="password" autocomplete="current-password" autofocus value=${key} aria-invalid=${wrong ? "true" : "false"} onInput=${(event) => setKey(event.target.value)} /></label>
    ${wrong && html`<p class="wrong" role="alert">${wrong}</p>`}
    <button class="primary" disabled=${!key || isBusy}>Sign in</button>
  </form></main>`;
}

const Message = ({ title, words, children }) => html`<main class="sign-in"><div>${icon("warn")}<h1>${title}</h1><p>${words}</p>${children}</div></main>`;

function useKeys() {
  useEffect(() => {
    const onKey = (event) => {
      const isTyping = /INPUT|TEXTAREA|SELECT/.test(document.activeElement?.tagName ?? "");
      if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o") {
        event.preventDefault();
        openNew();
      } else if (event.key === "/" && !isTyping) {
        event.preventDefault();
        document.querySelector(".composer textarea")?.focus();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function App() {
  const { view, id, isNew } = useHash();
  const [session, setSession] = useState(null);
  const [problem, setProblem] = useState(null);
  const [served, setServed] = useState(null);
  const [agentName, setAgentName] = useState(null);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [spoken, say] = useState("");
  const isIn = Boolean(session && (session.signed_in || !session.needs_key));
  const threads = useThreads(isIn);
  const load = useCallback(() => ask("/page/session").then(setSession, setProblem), []);
  useEffect(() => {
    load();
    // A session that has expired, or whose key is gone, asks for a key again.
    const onSignedOut = () => setSession((before) => before && { ...before, signed_in: !before.needs_key });
    addEventListener("signed-out", onSignedOut);
    return () => removeEventListener("signed-out", onSignedOut);
  }, []);
  useEffect(() => void (isIn && ask("/page/agents").then(setServed, setProblem)), [isIn]);
  useKeys();
  if (problem) {
    return html`<${Message} title="No answer" words=${problem.message}><button type="button" class="primary" onClick=${() => location.reload()}>Try again</button><//>`;
  }
  if (!session) return null;
  if (!isIn) return html`<${SignIn} onSignedIn=${setSession} />`;
  if (!served) return null;
  const onMenu = () => setMenuOpen(true);
  const onDeleted = (threadId) => (threadId === id && openNew(), threads.load());
  const onSignOut = () => ask("/page/session", { method: "DELETE" }).finally(() => location.reload());
  const { agents, gateway = [] } = served;
  const callsTitle = gateway.length ? "Gateway" : "API calls";
  const views = {
    run: () => html`<${Run} key=${id} runId=${id} onMenu=${onMenu} />`,
    runs: () => html`<${Runs} key=${id} threadId=${id} onMenu=${onMenu} />`,
    calls: () => html`<${Calls} onMenu=${onMenu} title=${callsTitle} />`,
    usage: () => html`<${Usage} onMenu=${onMenu} />`,
    chat: () =>
      agents.length
        ? html`<${Chat} key=${id} threadId=${id} isNew=${isNew} agents=${agents} agentName=${agentName} onAgent=${setAgentName} onMenu=${onMenu} onChanged=${() => threads.load()} say=${say} />`
        : html`<${Calls} onMenu=${onMenu} title=${callsTitle} />`,
  };
  return html`<button type="button" class="skip" onClick=${() => document.querySelector(".composer textarea, main a, main button")?.focus()}>To the content</button>
    <${Sidebar} threads=${threads} current=${view === "chat" ? id : ""} isOpen=${isMenuOpen} onClose=${() => setMenuOpen(false)} onNew=${openNew} onDeleted=${onDeleted} session=${session} callsTitle=${callsTitle} onSignOut=${onSignOut} />
    ${(views[view] ?? views.chat)()}
    <div class="hidden" role="status" aria-live="polite">${spoken}</div>`;
}

render(html`<${App} />`, document.getElementById("app"));
