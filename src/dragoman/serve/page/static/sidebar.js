// The conversations, found by words and sorted by age, and the way to runs and calls.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { ask, path } from "./api.js";
import { age, visible } from "./format.js";
import { icon } from "./icons.js";

const SEARCH_DELAY = 200;

export function useThreads(isIn) {
  const [query, setQuery] = useState("");
  const [list, setList] = useState({ items: null, page: 0, has_more: false });
  const load = (page = 0) =>
    ask(`/page/threads?page=${page}&q=${encodeURIComponent(query)}`).then(
      (found) => setList((before) => ({ ...found, items: page ? [...(before.items ?? []), ...found.items] : found.items })),
      () => setList((before) => ({ ...before, items: before.items ?? [] })),
    );
  useEffect(() => {
    if (!isIn) return undefined;
    const timer = setTimeout(load, query ? SEARCH_DELAY : 0);
    return () => clearTimeout(timer);
  }, [query, isIn]);
  return { ...list, query, setQuery, load };
}

function Thread({ thread, isCurrent, onOpen, onDeleted }) {
  const remove = async () => {
    if (!confirm(`Delete “${visible(thread.title)}”? It cannot be brought back.`)) return;
    try {
      await ask(path`/page/threads/${thread.id}`, { method: "DELETE" });
      onDeleted(thread.id);
    } catch (error) {
      if (error.status === 404) onDeleted(thread.id);
      else alert(`It was not deleted: ${error.message}`);
    }
  };
  return html`<li class=${isCurrent ? "current" : ""}>
    <a href=${`#/chat/${encodeURIComponent(thread.id)}`} aria-current=${isCurrent ? "page" : null} onClick=${onOpen}><bdi>${visible(thread.title || "Untitled")}</bdi></a>
    <button type="button" class="quiet" aria-label=${`Delete ${visible(thread.title)}`} onClick=${remove}>${icon("bin")}</button>
  </li>`;
}

export function Sidebar({ threads, current, isOpen, onClose, onNew, onDeleted, session, callsTitle, onSignOut }) {
  const groups = Map.groupBy(threads.items ?? [], ({ updated_at }) => age(updated_at));
  return html`${isOpen && html`<div class="shade" onClick=${onClose} />`}
  <aside class=${isOpen ? "open" : ""} aria-label="Conversations" onKeyDown=${(event) => event.key === "Escape" && onClose()}>
    <div class="brand">${icon("mark")}<b>dragoman</b><button type="button" class="quiet phone-only" aria-label="Close" onClick=${onClose}>${icon("cross")}</button></div>
    <button type="button" class="new" onClick=${() => (onNew(), onClose())}>${icon("plus")}New conversation</button>
    <label class="search">${icon("search")}<span class="hidden">Search conversations</span>
      <input type="search" placeholder="Search" value=${threads.query} onInput=${(event) => threads.setQuery(event.target.value)} /></label>
    <nav aria-label="Conversations">
      ${!threads.items && html`<div class="skeleton"><i /><i /></div>`}
      ${threads.items?.length === 0 && html`<p class="none">${threads.query ? "Nothing is found." : "Conversations appear here."}</p>`}
      ${[...groups].map(([when, all]) => html`<h2>${when}</h2><ul>${all.map((thread) => html`<${Thread} key=${thread.id} thread=${thread} isCurrent=${thread.id === current} onOpen=${onClose} onDeleted=${onDeleted} />`)}</ul>`)}
      ${threads.has_more && html`<button type="button" class="more" onClick=${() => threads.load(threads.page + 1)}>Show more</button>`}
    </nav>
    <footer>
      <a href="#/runs/" onClick=${onClose}>${icon("runs")}All runs</a>
      <a href="#/calls/" onClick=${onClose}>${icon("gate")}${callsTitle}</a>
      <a href="#/usage/" onClick=${onClose}>${icon("chart")}Usage</a>
      ${session.needs_key && html`<button type="button" class="quiet" onClick=${onSignOut}>Sign out${session.name ? ` (${visible(session.name)})` : ""}</button>`}
    </footer>
  </aside>`;
}
