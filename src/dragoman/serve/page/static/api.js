// What the page asks of the server. Each request has the page's own header, which a form of another
// site cannot send.

const OWN = { "x-dragoman-page": "1" };
const FIRST_WAIT = 400;
const LONGEST_WAIT = 8000;
const LONGEST_SILENCE = 60_000; // the server says something more often

export class Problem extends Error {
  constructor(message, { status = 0, type = "offline", retryAfter = null } = {}) {
    super(message);
    Object.assign(this, { status, type, retryAfter });
  }
}

async function problemOf(response) {
  if (response.status === 401) dispatchEvent(new Event("signed-out"));
  const body = await response.json().catch(() => ({}));
  const error = body.error ?? {};
  return new Problem(error.message ?? `The server answered with status ${response.status}.`, {
    status: response.status,
    type: error.type ?? "error",
    retryAfter: error.retry_after ?? null,
  });
}

export async function ask(path, { method = "GET", body, signal } = {}) {
  const headers = { ...OWN, accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server cannot be reached.");
  }
  if (!response.ok) throw await problemOf(response);
  return response.status === 204 ? null : response.json();
}

const pause = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    const wake = () => (clearTimeout(timer), resolve());
    signal?.addEventListener("abort", wake, { once: true });
    addEventListener("online", wake, { once: true });
  });

// Yields the frames of a stream of Server-Sent Events: {id, event, data}.
async function* frames(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    // A connection may be gone without a word, as after a sleep of this machine.
    const timer = setTimeout(() => reader.cancel(), LONGEST_SILENCE);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const frame = { id: null, event: "message", data: "" };
      for (const line of part.split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) frame[line.slice(0, colon)] = line.slice(colon + 2);
      }
      if (frame.data) yield frame;
    }
  }
}

// Follows a run to its end, over lost connections: yields {n, name, value}. `onLost(tries)` is called
// while the connection is away, `onLost(0)` when it is back.
export async function* follow(runId, { from = 0, signal, onLost = () => {} } = {}) {
  let next = from;
  let tries = 0;
  for (;;) {
    try {
      const path = `/page/runs/${encodeURIComponent(runId)}/events?from=${next}`;
      const response = await fetch(path, { signal, headers: { ...OWN, accept: "text/event-stream" } });
      if (!response.ok) throw await problemOf(response);
      if (tries) onLost((tries = 0));
      for await (const { id, event, data } of frames(response)) {
        if (event === "end") return;
        if (id !== null) next = Number(id);
        yield { n: next, name: event, value: JSON.parse(data) };
      }
    } catch (error) {
      const isFinal = error instanceof Problem && error.status < 500 && error.status !== 429;
      if (error.name === "AbortError" || isFinal) throw error;
    }
    if (signal?.aborted) return;
    onLost(++tries);
    await pause(Math.min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_WAIT), signal);
  }
}

export const path = (strings, ...values) =>
  strings.reduce((text, piece, n) => text + encodeURIComponent(values[n - 1]) + piece);
