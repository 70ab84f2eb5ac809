// Small vocabularies made from texts, and the parts of tokenizer.json that hold them.
import { randomNumbers, randomText, table } from "./random_text.mjs";

const random = randomNumbers(7);
export const corpus = [...table, ...Array.from({ length: 1500 }, () => randomText(random))];

// GPT-2's characters for bytes.
export const byteCharacters = (() => {
  const codes = [];
  let next = 256;
  for (let byte = 0; byte < 256; ++byte) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    codes.push(String.fromCodePoint(printable ? byte : next++));
  }
  return codes;
})();
export const spellBytes = (text) => Array.from(Buffer.from(text), (byte) => byteCharacters[byte]).join("");

// The pairs that stand most often beside each other, merged one after another. `words`: lists of symbols.
export function trainMerges(words, count, join = (left, right) => left + right) {
  const lists = words.map((word) => [...word]);
  const merges = [];
  while (merges.length < count) {
    const counts = new Map();
    for (const list of lists)
      for (let i = 1; i < list.length; ++i) {
        const pair = `${list[i - 1]}\0${list[i]}`;
        counts.set(pair, (counts.get(pair) ?? 0) + 1);
      }
    // Several at once, as long as they share no symbol, make training quick.
    const best = [...counts].filter(([pair, n]) => n > 1 && !pair.startsWith("\0") && pair.split("\0").length === 2)
      .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 12);
    if (best.length === 0) break;
    const chosen = new Map();
    for (const [pair] of best) {
      const [left, right] = pair.split("\0");
      merges.push([left, right]);
      chosen.set(pair, join(left, right));
    }
    for (const list of lists)
      for (let i = 1; i < list.length; ++i) {
        const merged = chosen.get(`${list[i - 1]}\0${list[i]}`);
        if (merged !== undefined) list.splice(i - 1, 2, merged);
      }
  }
  return merges;
}

const numbered = (tokens) => Object.fromEntries([...new Set(tokens)].map((token, id) => [token, id]));
const rough = (text) => text.match(/ ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+/gu) ?? [];

export function byteLevelBpe(options = {}, { first = [] } = {}) {
  const words = corpus.slice(0, 500).flatMap(rough).map((word) => spellBytes(word)).map((word) => [...word]);
  const merges = trainMerges(words, 500);
  return {
    type: "BPE", dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false,
    byte_fallback: false, ignore_merges: false, vocab: numbered([...first, ...byteCharacters, ...merges.map((merge) => merge.join(""))]),
    merges, ...options };
}

const byteNames = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);

// Characters as they are; those that few texts have are left out.
export function characterBpe(options = {}, { mark = "▁", bytes = true, rare = 2, suffix = "", prefix = "" } = {}) {
  const texts = corpus.slice(0, 500).map((text) => text.replaceAll("\0", ""));
  const words = texts.flatMap(rough).map((word) => {
    const symbols = [...(mark === "" ? word.trim() : word.replaceAll(" ", mark))];
    return symbols.map((symbol, i) => (i > 0 ? prefix : "") + symbol + (i + 1 === symbols.length ? suffix : ""));
  });
  const counts = new Map();
  for (const symbol of words.flat()) counts.set(symbol, (counts.get(symbol) ?? 0) + 1);
  const known = [...counts].filter(([, n]) => n >= rare).map(([symbol]) => symbol);
  const join = (left, right) => left + right.slice(prefix.length);
  const merges = trainMerges(words.map((word) => word.filter((symbol) => counts.get(symbol) >= rare)), 400, join);
  return {
    type: "BPE", dropout: null, unk_token: "<unk>", continuing_subword_prefix: prefix || null, end_of_word_suffix: suffix || null,
    fuse_unk: true, byte_fallback: bytes, ignore_merges: false,
    vocab: numbered(["<unk>", "<s>", "</s>", ...(bytes ? byteNames : []), ...known, ...merges.map(([left, right]) => join(left, right))]),
    merges, ...options };
}

// Pieces of the corpus, scored by how often they stand in it. Many scores are equal, so that ties are common.
export function unigram(options = {}, { mark = "▁", bytes = false } = {}) {
  const counts = new Map();
  for (const text of corpus.slice(0, 700))
    for (const word of text.replaceAll(" ", mark).match(/▁?[^▁]+|▁/gu) ?? []) {
      const symbols = [...word];
      for (let i = 0; i < symbols.length; ++i)
        for (let n = 1; n <= 5 && i + n <= symbols.length; ++n) {
          const piece = symbols.slice(i, i + n).join("");
          counts.set(piece, (counts.get(piece) ?? 0) + 1);
        }
    }
  const known = [...counts].filter(([piece, n]) => n > 2 && !piece.includes("\0")).sort((a, b) => b[1] - a[1]).slice(0, 3000);
  const vocab = [["<unk>", 0], ["<s>", 0], ["</s>", 0], ...(bytes ? byteNames.map((name) => [name, -20]) : []),
    ...known.map(([piece, n]) => [piece, -Math.round(20 - 2 * Math.log(n)) / 2 - 1])];
  const seen = new Set();
  return { type: "Unigram", unk_id: 0, byte_fallback: bytes, vocab: vocab.filter(([piece]) => !seen.has(piece) && seen.add(piece)), ...options };
}

export function wordPiece(options = {}, { prefix = "##" } = {}) {
  const counts = new Map();
  for (const text of corpus)
    for (const word of text.toLowerCase().normalize("NFD").match(/[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu) ?? []) {
      const symbols = [...word];
      for (let i = 0; i < symbols.length; ++i)
        for (let n = 1; n <= 4 && i + n <= symbols.length; ++n) {
          const piece = (i > 0 ? prefix : "") + symbols.slice(i, i + n).join("");
          counts.set(piece, (counts.get(piece) ?? 0) + 1);
        }
    }
  const known = [...counts].filter(([, n]) => n > 2).sort((a, b) => b[1] - a[1]).slice(0, 2500).map(([piece]) => piece);
  return {
    type: "WordPiece", unk_token: "[UNK]", continuing_subword_prefix: prefix, max_input_chars_per_word: 100,
    vocab: numbered(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ...known]), ...options };
}

export function wordLevel(options = {}) {
  const counts = new Map();
  for (const text of corpus) for (const word of text.match(/\w+|[^\w\s]+/gu) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
  const known = [...counts].filter(([, n]) => n > 1).map(([word]) => word);
  return { type: "WordLevel", unk_token: "<unk>", vocab: numbered(["<unk>", "<s>", "</s>", ...known]), ...options };
}
