// useChat of @ai-sdk/react, rendered in a DOM, as a browser's page does it. node use_chat.mjs URL → a line of JSON for each check.
import { Window } from "happy-dom";

const window = new Window({ url: "http://localhost/" });
Object.assign(globalThis, { window, document: window.document });
Object.defineProperty(globalThis, "navigator", { value: window.navigator, configurable: true });
const { createElement, useEffect } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useChat } = await import("@ai-sdk/react");
const ai = await import("ai");

const url = process.argv[2];
const run = Math.random().toString(36).slice(2); // each run of the program has conversations of its own
const shown = (message) =>
  message.parts.map((part) => {
    if (part.type === "text" || part.type === "reasoning") return `${part.type}:${part.text}`;
    if (part.type.startsWith("tool-") || part.type === "dynamic-tool")
      return `${part.toolName ?? part.type}:${part.state}:${JSON.stringify(part.output ?? null)}`;
    return part.type;
  });

function page(name, { tools, sends, messages, answer, resume } = {}) {
  const id = `${run}-${name}`;
  const state = { data: [], errors: [], seen: new Set() };
  const transport = new ai.DefaultChatTransport({
    api: `${url}/ai-sdk`,
    body: tools ? { tools } : {},
    prepareReconnectToStreamRequest: ({ id }) => ({ api: `${url}/ai-sdk/${id}/stream` }),
  });
  function App() {
    const chat = useChat({
      id,
      transport,
      messages,
      resume,
      generateId: ai.createIdGenerator({ prefix: "c" }),
      sendAutomaticallyWhen: sends,
      onData: (part) => state.data.push(part.type),
      onError: (error) => state.errors.push(error.message),
      onToolCall: answer
        ? ({ toolCall }) => {
            if (!toolCall.dynamic || answer[toolCall.toolName] !== undefined)
              if (answer[toolCall.toolName] !== undefined)
                state.chat.addToolOutput({
                  tool: toolCall.toolName,
                  toolCallId: toolCall.toolCallId,
                  output: answer[toolCall.toolName],
                });
          }
        : undefined,
    });
    state.chat = chat;
    const last = chat.messages.at(-1);
    if (last?.role === "assistant") state.seen.add(shown(last).join("|"));
    useEffect(() => {
      state.rendered = true;
    });
    return createElement("div", null, JSON.stringify(chat.messages));
  }
  const root = createRoot(document.body.appendChild(document.createElement("div")));
  root.render(createElement(App));
  state.close = () => root.unmount();
  state.until = async (done, what = "ready") => {
    for (let at = 0; at < 400; at++) {
      if (state.rendered && done(state.chat)) return;
      await new Promise((next) => setTimeout(next, 10));
    }
    throw new Error(`never ${what}: ${state.chat?.status} ${JSON.stringify(state.chat?.messages)} ${state.errors}`);
  };
  state.idle = () => state.until((chat) => chat.status === "ready" || chat.status === "error");
  return state;
}

const last = (at) => (at.chat.messages.length ? shown(at.chat.messages.at(-1)) : []);

async function send(at, text) {
  await at.until((chat) => chat !== undefined, "rendered");
  const before = at.chat.messages.length;
  await at.chat.sendMessage({ text });
  await at.until((chat) => chat.status === "error" || (chat.status === "ready" && chat.messages.length === before + 2));
}

const checks = {
  async text() {
    const at = page("t1");
    await send(at, "hello");
    const first = { parts: last(at), errors: at.errors };
    await send(at, "again");
    return { ...first, second: last(at), roles: at.chat.messages.map((m) => m.role), ids: new Set(at.chat.messages.map((m) => m.id)).size };
  },
  async approval() {
    const at = page("t2", { sends: ai.lastAssistantMessageIsCompleteWithApprovalResponses });
    await send(at, "pay");
    const asked = last(at);
    const part = at.chat.messages.at(-1).parts.find((each) => each.state === "approval-requested");
    await at.chat.addToolApprovalResponse({ id: part.approval.id, approved: true });
    await at.until((chat) => chat.status === "ready" && last(at).some((each) => each.includes("four")), "approved");
    return { asked, done: last(at), count: at.chat.messages.length, errors: at.errors };
  },
  async denied() {
    const at = page("t3", { sends: ai.lastAssistantMessageIsCompleteWithApprovalResponses });
    await send(at, "pay");
    const part = at.chat.messages.at(-1).parts.find((each) => each.state === "approval-requested");
    await at.chat.addToolApprovalResponse({ id: part.approval.id, approved: false, reason: "too dear" });
    await at.until((chat) => chat.status === "ready" && last(at).some((each) => each.includes("four")), "denied");
    return { done: last(at), errors: at.errors };
  },
  async client_tool() {
    const tools = [{ name: "get_place", description: "Where the user is.", inputSchema: { type: "object", properties: { location: { type: "string" } } } }];
    const at = page("t4", { tools, answer: { get_place: "Oakland" }, sends: ai.lastAssistantMessageIsCompleteWithToolCalls });
    await send(at, "where");
    await at.until((chat) => chat.status === "ready" && last(at).some((each) => each.includes("four")), "answered");
    return { done: last(at), errors: at.errors };
  },
  async data() {
    const at = page("t5");
    await send(at, "note");
    return { done: last(at), data: [...new Set(at.data)].sort(), errors: at.errors };
  },
  async stop() {
    const at = page("t6");
    await at.until((chat) => chat !== undefined, "rendered");
    at.chat.sendMessage({ text: "long" });
    await at.until((chat) => chat.status === "streaming" && at.seen.size > 3, "begun");
    await at.chat.stop();
    await at.idle();
    const words = last(at).join("").split("word").length;
    return { some: words > 1, all: words > 3000, status: at.chat.status, errors: at.errors };
  },
  async regenerate() {
    const at = page("t7");
    await send(at, "hello");
    const before = at.chat.messages.length;
    await at.chat.regenerate();
    await at.idle();
    return { before, after: at.chat.messages.length, done: last(at), errors: at.errors };
  },
  async error() {
    const at = page("t8");
    await send(at, "fail");
    return { status: at.chat.status, errors: at.errors };
  },
  async resume() {
    const at = page("t9");
    await send(at, "hello");
    const whole = last(at);
    const again = page("t9", { resume: true, messages: at.chat.messages.slice(0, 1) });
    await again.until((chat) => chat.messages.length === 2 && chat.status === "ready", "resumed");
    return { same: JSON.stringify(last(again)) === JSON.stringify(whole), count: again.chat.messages.length };
  },
  async resume_approved() {
    const sends = ai.lastAssistantMessageIsCompleteWithApprovalResponses;
    const at = page("t10", { sends });
    await send(at, "pay");
    const asked = structuredClone(at.chat.messages);
    const part = at.chat.messages.at(-1).parts.find((each) => each.state === "approval-requested");
    await at.chat.addToolApprovalResponse({ id: part.approval.id, approved: true });
    await at.until((chat) => chat.status === "ready" && last(at).some((each) => each.includes("four")), "approved");
    const found = { ids: at.chat.messages.map((each) => each.id), done: last(at) };
    at.close();
    for (const messages of [asked.slice(0, 1), asked, at.chat.messages]) {
      const again = page("t10", { resume: true, messages });
      await again.until((chat) => chat.status === "ready" && last(again).some((each) => each.includes("four")), "resumed");
      const ids = again.chat.messages.map((each) => each.id);
      found.same = (found.same ?? true) && JSON.stringify([ids, last(again)]) === JSON.stringify([found.ids, found.done]);
      again.close();
    }
    return { same: found.same, count: found.ids.length };
  },
};

for (const [name, check] of Object.entries(checks)) {
  try {
    console.log(JSON.stringify({ check: name, ...(await check()) }));
  } catch (error) {
    console.log(JSON.stringify({ check: name, failed: String(error) }));
  }
}
process.exit(0);
