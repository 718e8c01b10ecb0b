// Answers commands on standard input, one JSON object a line: `{command, …}` → `{value}` or `{error}`.

import { createInterface } from "node:readline";
import { generate, library, scripted } from "./generate.mjs";

console.log = console.info = console.warn = console.error = () => {}; // the answers stand on standard output alone

// JSON holds neither bytes nor addresses: they are made again.
function revived(value) {
  if (Array.isArray(value)) return value.map(revived);
  if (!value || typeof value !== "object") return value;
  const keys = Object.keys(value);
  if (keys.length && keys.every((key, at) => key === String(at))) return Uint8Array.from(Object.values(value));
  const made = Object.fromEntries(keys.map((key) => [key, revived(value[key])]));
  return made.type === "url" && typeof made.url === "string" ? { ...made, url: new URL(made.url) } : made;
}

const COMMANDS = {
  versions: async () => ({ node: process.version }),
  generate,
  to_model: async ({ version, messages }) => {
    const { ai } = await library(version);
    return version === 4 ? ai.convertToCoreMessages(messages) : await ai.convertToModelMessages(messages);
  },
  // Whether the library's own check takes messages: null, or what it says.
  check_ui: async ({ version, messages }) => {
    const { ai } = await library(version);
    if (version === 4) {
      ai.convertToCoreMessages(messages);
      return null;
    }
    const found = await ai.safeValidateUIMessages({ messages });
    return found.success ? null : String(found.error.message);
  },
  check_model: async ({ version, messages }) => {
    const { ai } = await library(version);
    const schema = version === 4 ? ai.coreMessageSchema : ai.modelMessageSchema;
    for (const [at, message] of revived(messages).entries()) {
      const found = schema.safeParse(message);
      if (!found.success) return `[${at}] ${JSON.stringify(found.error.issues)}`;
    }
    return null;
  },
  // What a model gets of messages: the prompt in the provider's interface.
  prompt: async ({ version, messages, ui }) => {
    const { ai } = await library(version);
    const { model, prompts } = await scripted(version, []);
    const given = ui && version > 4 ? await ai.convertToModelMessages(messages) : ui ? messages : revived(messages);
    const about = version === 4 ? {} : { allowSystemInMessages: true };
    const result = ai.streamText({ model, messages: given, onError: () => {}, ...about });
    let failure;
    for await (const part of result.fullStream) if (part.type === "error") failure = part.error;
    if (failure) throw failure;
    return prompts[0];
  },
  // What a client makes of a UI message stream, and what of it the library's schema does not take.
  show_stream: async ({ version, chunks, message }) => {
    const { ai } = await library(version);
    const invalid = [];
    if (version === 7) {
      const schema = ai.uiMessageChunkSchema();
      for (const chunk of chunks) {
        const found = await schema.validate(chunk);
        if (!found.success) invalid.push(`${chunk.type}: ${found.error.message}`);
      }
    }
    let last = null;
    const stream = new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk);
        controller.close();
      },
    });
    const given = message ? { message: structuredClone(message) } : {};
    for await (const each of ai.readUIMessageStream({ stream, terminateOnError: true, ...given })) last = each;
    return { message: last, invalid };
  },
  // What the library's chat asks a server, and what becomes of the bytes that it gets.
  chat: async ({ version, data }) => {
    const { ai } = await library(version);
    const state = { status: "ready", messages: [], snapshot: structuredClone };
    state.pushMessage = (message) => { state.messages = [...state.messages, message]; };
    state.replaceMessage = (at, message) => { state.messages = state.messages.with(at, message); };
    let asked;
    const fetch = async (url, { headers, body }) => {
      asked = { headers, fields: Object.keys(JSON.parse(body)).sort() };
      return new Response(data);
    };
    class Chat extends ai.AbstractChat {}
    const transport = new ai.DefaultChatTransport({ api: "http://127.0.0.1/ai-sdk", fetch });
    const chat = new Chat({ id: "chat", transport, state });
    await chat.sendMessage({ text: "Hi." });
    return { asked, status: chat.status, message: chat.lastMessage };
  },
  mastra: async (given) => (await import("./mastra.mjs")).run(given),
  mastra_bench: async (given) => (await import("./mastra.mjs")).bench(given),
};

process.on("unhandledRejection", () => {});
for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line);
  let answer;
  try {
    const late = new Promise((_, fail) => setTimeout(fail, 30_000, new Error("no answer in 30 s")).unref());
    answer = { value: (await Promise.race([COMMANDS[command](given), late])) ?? null };
  } catch (error) {
    answer = { error: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
