// Code in five colours, whatever its language: comments, texts, numbers, keywords, calls.

const KEYWORDS = new Set(
  `abstract and as assert async await break case catch class const continue def default del do elif else enum
  except export extends false finally fn for from func function go if impl implements import in interface is let
  match module mut new nil none not null of or package pass private protected pub public raise return select self
  static struct super switch this throw trait true try type typeof undefined use var void where while with yield`.split(/\s+/),
);
const SIGNS = new RegExp(
  [
    String.raw`(?<comment>/\*[^]*?\*/|//[^\n]*|(?<=^|\s)#[^\n]*|<!--[^]*?-->)`,
    String.raw`(?<text>"""[^]*?"""|'''[^]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\`(?:\\.|[^\`\\])*\`)`,
    String.raw`(?<number>\b(?:0x[\da-f]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b)`,
    String.raw`(?<word>[a-z_$][\w$]*)(?<call>(?=\s?\())?`,
  ].join("|"),
  "gim",
);
const LONGEST = 40_000;

function kindOf({ comment, text, number, word, call }) {
  if (comment !== undefined) return "comment";
  if (text !== undefined) return "text";
  if (number !== undefined) return "number";
  if (KEYWORDS.has(word.toLowerCase())) return "keyword";
  return call === undefined ? "" : "call";
}

export function highlighted(code) {
  const made = document.createDocumentFragment();
  let end = 0;
  for (const match of code.length > LONGEST ? [] : code.matchAll(SIGNS)) {
    const kind = kindOf(match.groups);
    if (!kind) continue;
    const span = document.createElement("span");
    span.className = `code-${kind}`;
    span.textContent = match[0];
    made.append(code.slice(end, match.index), span);
    end = match.index + match[0].length;
  }
  made.append(code.slice(end));
  return made;
}
