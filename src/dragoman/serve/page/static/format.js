// Numbers, times and texts as people read them.

const UNITS = [
  [60_000, (ms) => `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`],
  [1000, (ms) => `${(ms / 1000).toFixed(1)} s`],
  [0, (ms) => `${Math.round(ms)} ms`],
];
const DAY = 86_400_000;
const AGES = [
  [1, "Today"],
  [2, "Yesterday"],
  [7, "This week"],
  [31, "This month"],
  [Infinity, "Older"],
];
// Signs that are not seen: they steer terminals, or turn the direction of a text.
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

export const count = (number) => Number(number ?? 0).toLocaleString("en");

export const duration = (ms) => UNITS.find(([least]) => ms >= least)?.[1](ms) ?? "";

export function money(dollars) {
  if (dollars === null || dollars === undefined) return "";
  const amount = Number(dollars);
  if (amount === 0) return "free";
  return amount < 0.01 ? `${(amount * 100).toFixed(3)} ¢` : `$${amount.toFixed(3)}`;
}

export function age(time) {
  const days = Math.floor((new Date().setHours(23, 59, 59, 999) - new Date(time)) / DAY);
  return AGES.find(([most]) => days < most)[1];
}

const CLOCK = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" };
export const clock = (time, more) => new Date(time).toLocaleString("en-GB", { ...CLOCK, ...more });
export const zoned = (time) => clock(time, { timeZoneName: "short" });

export const shortModel = (name) => (name ?? "").split(":").at(-1);

const showCode = (sign) => `⟨U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
export const visible = (text) => String(text ?? "").replace(UNSEEN, showCode);

export const pretty = (value) =>
  visible(typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""));

export const tokens = (usage) => (usage ? (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0) : 0);
