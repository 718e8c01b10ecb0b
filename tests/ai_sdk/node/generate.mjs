// Conversations that the library writes itself: a scripted model answers, its chat keeps the messages.

import { createRequire } from "node:module";
import { stream } from "./parts.mjs";

const MODELS = { 4: "MockLanguageModelV1", 5: "MockLanguageModelV2", 6: "MockLanguageModelV3", 7: "MockLanguageModelV4" };
const libraries = {};

export async function library(version) {
  libraries[version] ??= { ai: await import(`ai${version}`), test: await import(`ai${version}/test`) };
  return libraries[version];
}

const copy = (value) => structuredClone(value);

// A model that gives the answers of a list, one a call, and keeps the prompts that it got.
export async function scripted(version, answers) {
  const { test } = await library(version);
  const prompts = [];
  const model = new test[MODELS[version]]({
    ...(version === 4 ? {} : { supportedUrls: { "*/*": [/.*/] } }),
    ...(version === 4 ? { supportsImageUrls: true, supportsUrl: () => true } : {}),
    doStream: async ({ prompt }) => {
      prompts.push(prompt);
      const answer = answers.shift() ?? [{ kind: "text", text: "Nothing is left to say." }];
      return {
        stream: test.convertArrayToReadableStream(stream(version, answer)),
        ...(version === 4 ? { rawCall: { rawPrompt: null, rawSettings: {} } } : {}),
      };
    },
  });
  return { model, prompts };
}

// `{name: {output | error | client | approval | preliminary, dynamic}}` → the library's tools.
async function tools(version, given) {
  const { ai } = await library(version);
  const made = {};
  for (const [name, spec] of Object.entries(given ?? {})) {
    const schema = ai.jsonSchema({ type: "object", additionalProperties: true });
    const execute = async (input, options) => {
      if (spec.error) throw new Error(spec.error);
      return spec.echo ? { input } : spec.output;
    };
    const streamed = async function* (input) {
      for (const value of spec.preliminary) yield value;
      yield spec.output;
    };
    const run = spec.client ? {} : { execute: spec.preliminary && version > 4 ? streamed : execute };
    made[name] = {
      description: name,
      ...(version === 4 ? { parameters: schema } : { inputSchema: schema }),
      ...(spec.dynamic && version > 4 ? { type: "dynamic" } : {}),
      ...(spec.title ? { title: spec.title } : {}),
      ...(spec.approval ? { needsApproval: true } : {}),
      ...run,
    };
  }
  return made;
}

export async function generate({ version, turns, tools: given, system, names }) {
  return version === 4 ? await generateOld(turns, given, system) : await generateNew(version, turns, given, system, names);
}

function ids(prefix) {
  let number = 0;
  return () => `${prefix}-${++number}`;
}

async function generateNew(version, turns, given, system) {
  const { ai } = await library(version);
  const made = await tools(version, given);
  const answers = [], responses = [], states = [];
  const { model } = await scripted(version, answers);
  const nextId = ids("m");
  let data = [], metadata;
  const sendMessages = async ({ messages }) => {
    const modelMessages = await ai.convertToModelMessages(messages, { tools: made });
    const result = ai.streamText({
      model, tools: made, messages: modelMessages, ...(system ? { system } : {}),
      stopWhen: ai.stepCountIs(8), onError: () => {},
    });
    result.response.then((response) => responses.push([...modelMessages, ...response.messages]), () => {});
    const parts = data;
    return ai.createUIMessageStream({
      originalMessages: messages,
      generateId: nextId,
      onError: (error) => String(error?.message ?? error),
      execute: async ({ writer }) => {
        for (const part of parts.filter((each) => each.at !== "end")) writer.write(part.part);
        writer.merge(result.toUIMessageStream({
          originalMessages: messages, generateMessageId: nextId, sendReasoning: true, sendSources: true,
          messageMetadata: ({ part }) => (metadata && part.type === "start" ? metadata : undefined),
          onError: (error) => String(error?.message ?? error),
        }));
        await result.consumeStream({ onError: () => {} });
        for (const part of parts.filter((each) => each.at === "end")) writer.write(part.part);
      },
    });
  };
  const state = {
    status: "ready", error: undefined, messages: [],
    pushMessage(message) { this.messages = [...this.messages, message]; states.push(copy(this.messages)); },
    popMessage() { this.messages = this.messages.slice(0, -1); },
    replaceMessage(index, message) {
      this.messages = this.messages.map((each, at) => (at === index ? copy(message) : each));
      states.push(copy(this.messages));
    },
    snapshot: copy,
  };
  class Memory extends ai.AbstractChat {}
  const chat = new Memory({ id: "chat", generateId: nextId, state, transport: { sendMessages, reconnectToStream: async () => null } });
  for (const turn of turns) {
    answers.push(...(turn.answers ?? []));
    data = turn.data ?? [];
    metadata = turn.metadata;
    const before = answers.length;
    if (turn.user) await chat.sendMessage(turn.user.parts ? copy(turn.user) : { text: turn.user.text, metadata: turn.user.metadata });
    for (let round = 0; round < 4 && version > 4; round++) {
      const pending = (chat.messages.at(-1)?.parts ?? []).filter((part) => part.toolCallId);
      let changed = false;
      for (const part of pending) {
        const name = part.toolName ?? part.type.slice(5);
        const output = turn.outputs?.[part.toolCallId];
        if (output && part.state === "input-available") {
          const add = (chat.addToolOutput ?? chat.addToolResult).bind(chat);
          await add(output.error ? { state: "output-error", tool: name, toolCallId: part.toolCallId, errorText: output.error }
            : { tool: name, toolCallId: part.toolCallId, output: output.output });
          changed = true;
        }
        const approval = turn.approvals?.[part.toolCallId];
        if (approval && part.state === "approval-requested") {
          await chat.addToolApprovalResponse({ id: part.approval.id, ...approval });
          changed = true;
        }
      }
      if (!changed || turn.stay) break;
      await chat.sendMessage();
    }
    if (turn.regenerate) {
      answers.push(...turn.regenerate);
      await chat.regenerate();
    }
  }
  const error = chat.error ? String(chat.error.message) : undefined;
  let model_ = [];
  try { model_ = await ai.convertToModelMessages(chat.messages, { tools: made }); } catch (failure) { model_ = { error: String(failure.message) }; }
  return { ui: chat.messages, states, responses, model: model_, error, unused: answers.length };
}

async function generateOld(turns, given, system) {
  const { ai } = await library(4);
  const require = createRequire(import.meta.resolve("ai4"));
  const { callChatApi, updateToolCallResult } = require("@ai-sdk/ui-utils");
  const made = await tools(4, given);
  const answers = [], responses = [], states = [];
  const { model } = await scripted(4, answers);
  const nextId = ids("m");
  let messages = [], appended = [], failure;
  const request = async (turn) => {
    const before = messages;
    let body;
    try {
      body = ai.streamText({
        model, tools: made, messages, ...(system ? { system } : {}), maxSteps: 8,
        experimental_generateMessageId: nextId, onError: () => {},
      });
    } catch (error) {
      failure = String(error.message); // a call without a result, for one
      return;
    }
    const fetch = async () => body.toDataStreamResponse({ sendReasoning: true, sendSources: true, getErrorMessage: (error) => String(error?.message ?? error) });
    try {
      await callChatApi({
        api: "http://localhost/", body: {}, streamProtocol: "data", fetch, generateId: nextId,
        restoreMessagesOnFailure: () => {}, lastMessage: copy(messages.at(-1)), requestType: "generate",
        onUpdate: ({ message, replaceLastMessage }) => {
          messages = [...(replaceLastMessage ? before.slice(0, -1) : before), copy(message)];
          states.push(copy(messages));
        },
        onFinish: () => {},
      });
    } catch (error) { failure = String(error.message); }
    try {
      const response = await Promise.race([body.response, new Promise((done) => setTimeout(done, 200))]);
      if (!response) return; // it waits for ever where the stream broke off
      responses.push([...ai.convertToCoreMessages(before, { tools: made }), ...response.messages]);
      appended = ai.appendResponseMessages({ messages: before, responseMessages: response.messages });
    } catch (error) { failure = String(error.message); }
  };
  for (const turn of turns) {
    answers.push(...(turn.answers ?? []));
    if (turn.user) {
      const { text, attachments, data } = turn.user;
      messages = [...messages, {
        id: nextId(), createdAt: new Date(Date.UTC(2026, 0, 1, 0, 0, messages.length)), role: "user", content: text ?? "",
        ...(attachments ? { experimental_attachments: attachments } : {}), ...(data === undefined ? {} : { data }),
        parts: [{ type: "text", text: text ?? "" }],
      }];
      await request(turn);
    }
    for (let round = 0; round < 4; round++) {
      const calls = (messages.at(-1)?.toolInvocations ?? []).filter((call) => call.state === "call" && turn.outputs?.[call.toolCallId]);
      if (!calls.length) break;
      for (const call of calls) {
        updateToolCallResult({ messages, toolCallId: call.toolCallId, toolResult: turn.outputs[call.toolCallId].output });
      }
      if (turn.stay) break;
      await request(turn);
    }
  }
  let model_;
  try { model_ = ai.convertToCoreMessages(messages, { tools: made }); } catch (error) { model_ = { error: String(error.message) }; }
  return { ui: messages, states, responses, appended, model: model_, error: failure, unused: answers.length };
}
