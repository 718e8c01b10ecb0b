// What a scripted model puts out, in the parts of each version of the provider's interface.

const cut = (text) => [text.slice(0, Math.ceil(text.length / 2)), text.slice(Math.ceil(text.length / 2))].filter(Boolean);
const known = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
const argumentsOf = (call) => call.raw ?? JSON.stringify(call.input ?? {});
let count = 0;

const OLD = {
  text: ({ text }) => cut(text).map((textDelta) => ({ type: "text-delta", textDelta })),
  reasoning: ({ text, signature, redacted }) => [
    ...cut(text ?? "").map((textDelta) => ({ type: "reasoning", textDelta })),
    ...(signature ? [{ type: "reasoning-signature", signature }] : []),
    ...(redacted ? [{ type: "redacted-reasoning", data: redacted }] : []),
  ],
  call: (call) => [
    ...cut(argumentsOf(call)).map((argsTextDelta) => ({
      type: "tool-call-delta", toolCallType: "function", toolCallId: call.id, toolName: call.name, argsTextDelta,
    })),
    { type: "tool-call", toolCallType: "function", toolCallId: call.id, toolName: call.name, args: argumentsOf(call) },
  ],
  source: (source) => (source.url ? [{ type: "source", source: known({ sourceType: "url", ...source, kind: undefined }) }] : []),
  file: ({ mediaType, data }) => [{ type: "file", mimeType: mediaType, data }],
  error: ({ error }) => [{ type: "error", error: new Error(error) }],
  finish: ({ reason }) => [
    { type: "finish", finishReason: reason, logprobs: undefined, usage: { promptTokens: 7, completionTokens: 5 } },
  ],
};

const NEW = {
  text: ({ text, providerMetadata }, version, id) => [
    { type: "text-start", id },
    ...cut(text).map((delta) => ({ type: "text-delta", id, delta })),
    known({ type: "text-end", id, providerMetadata }),
  ],
  reasoning: ({ text, providerMetadata }, version, id) => [
    known({ type: "reasoning-start", id, providerMetadata }),
    ...cut(text ?? "").map((delta) => ({ type: "reasoning-delta", id, delta })),
    known({ type: "reasoning-end", id, providerMetadata }),
  ],
  call: (call) => {
    const about = known({ toolName: call.name, providerExecuted: call.providerExecuted, dynamic: call.dynamic });
    return [
      { type: "tool-input-start", id: call.id, ...about },
      ...cut(argumentsOf(call)).map((delta) => ({ type: "tool-input-delta", id: call.id, delta })),
      { type: "tool-input-end", id: call.id },
      ...(call.cut ? [] : [
        known({ type: "tool-call", toolCallId: call.id, input: argumentsOf(call), ...about, providerMetadata: call.providerMetadata }),
      ]),
    ];
  },
  result: (result) => [known({
    type: "tool-result", toolCallId: result.id, toolName: result.name, result: result.output, isError: result.isError,
    providerExecuted: true, dynamic: result.dynamic, preliminary: result.preliminary, providerMetadata: result.providerMetadata,
  })],
  source: ({ kind, ...source }) => [{ type: "source", sourceType: source.url ? "url" : "document", ...source }],
  file: ({ mediaType, data, providerMetadata }, version) => [
    known({ type: "file", mediaType, data: version === 7 ? { type: "data", data } : data, providerMetadata }),
  ],
  reasoning_file: ({ mediaType, data, providerMetadata }, version) =>
    version === 7 ? [known({ type: "reasoning-file", mediaType, data: { type: "data", data }, providerMetadata })] : [],
  custom: ({ custom, providerMetadata }, version) =>
    version === 7 ? [known({ type: "custom", kind: custom, providerMetadata })] : [],
  approval: ({ approvalId, id }, version) => (version < 6 ? [] : [{ type: "tool-approval-request", approvalId, toolCallId: id }]),
  error: ({ error }) => [{ type: "error", error: new Error(error) }],
  finish: ({ reason }, version) => [{
    type: "finish",
    finishReason: version === 5 ? reason : { unified: reason, raw: reason },
    usage: version === 5
      ? { inputTokens: 7, outputTokens: 5, totalTokens: 12 }
      : { inputTokens: { total: 7, noCache: 7 }, outputTokens: { total: 5, text: 5 } },
  }],
};

// One answer of the model: a list of `{kind, …}` → the parts of its stream.
export function stream(version, answer) {
  const calls = answer.some((each) => each.kind === "call" && !each.providerExecuted && !each.cut);
  const ended = answer.some((each) => each.kind === "finish" || each.kind === "error");
  const table = version === 4 ? OLD : NEW;
  const all = ended ? answer : [...answer, { kind: "finish", reason: calls ? "tool-calls" : "stop" }];
  const start = version === 4 ? [] : [{ type: "stream-start", warnings: [] }];
  return [...start, ...all.flatMap((each) => table[each.kind]?.(each, version, `part-${++count}`) ?? [])];
}
