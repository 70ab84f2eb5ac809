// Tokenizers of components thrown together at random.
import { charsmap } from "./charsmap.mjs";
import { pick } from "./random_text.mjs";
import { byteLevelBpe, characterBpe, unigram, wordLevel, wordPiece } from "./training.mjs";

const models = [byteLevelBpe(), byteLevelBpe({ ignore_merges: true }), characterBpe(), characterBpe({ fuse_unk: false, byte_fallback: false }),
  characterBpe({}, { mark: "", suffix: "</w>", bytes: false }), unigram(), unigram({}, { bytes: true }), wordPiece(), wordLevel()];

const flag = (random) => random() < 0.5;
const expressions = ["\\s+", "\\p{L}+", "[^\\s\\p{L}]+", "\\d", " ?[\\p{L}\\p{M}]+|\\s", "(?i:the|hello)", "\\p{N}{1,3}", "[aeiou]", "\\w+", "(?=[A-Z])", "\\b",
  "[\\p{L}&&[^a-z]]", "\\h+", "a|ab", "\\p{Han}|\\p{Lu}", "^.", ".$", "x*"];
const pattern = (random) => (flag(random) ? { Regex: pick(random, expressions) } : { String: pick(random, [" ", "a", "▁", "ll", ".", "é"]) });
const behavior = (random) => pick(random, ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]);

const normalizers = [
  () => ({ type: "NFC" }), () => ({ type: "NFD" }), () => ({ type: "NFKC" }), () => ({ type: "NFKD" }), () => ({ type: "Lowercase" }),
  () => ({ type: "StripAccents" }), () => ({ type: "Nmt" }), () => ({ type: "Precompiled", precompiled_charsmap: charsmap }),
  (random) => ({ type: "Strip", strip_left: flag(random), strip_right: flag(random) }),
  (random) => ({ type: "Replace", pattern: { Regex: pick(random, ["\\s+", "[aeiou]", "l{2}", " {2,}", "\\p{P}"]) }, content: pick(random, ["", " ", "▁", "xy"]) }),
  (random) => ({ type: "Replace", pattern: { String: pick(random, [" ", "a", "ll"]) }, content: pick(random, ["", "▁", "bb"]) }),
  (random) => ({ type: "Prepend", prepend: pick(random, ["▁", " ", "a"]) }),
  (random) => ({ type: "BertNormalizer", clean_text: flag(random), handle_chinese_chars: flag(random), strip_accents: pick(random, [null, true, false]), lowercase: flag(random) })];

const splitters = [
  (random) => ({ type: "ByteLevel", add_prefix_space: flag(random), trim_offsets: true, use_regex: flag(random) }), () => ({ type: "BertPreTokenizer" }),
  () => ({ type: "Whitespace" }), () => ({ type: "WhitespaceSplit" }), (random) => ({ type: "Punctuation", behavior: behavior(random) }),
  (random) => ({ type: "Digits", individual_digits: flag(random) }), (random) => ({ type: "CharDelimiterSplit", delimiter: pick(random, ["a", " ", "▁"]) }),
  (random) => ({ type: "Split", pattern: pattern(random), behavior: behavior(random), invert: flag(random) }), () => ({ type: "UnicodeScripts" }),
  (random) => ({ type: "FixedLength", length: 1 + Math.floor(random() * 6) }),
  (random) => ({ type: "Metaspace", replacement: "▁", prepend_scheme: pick(random, ["always", "first", "never"]), split: flag(random) })];

const decoders = [
  () => ({ type: "ByteLevel" }), () => ({ type: "Fuse" }), () => ({ type: "ByteFallback" }), (random) => ({ type: "WordPiece", prefix: "##", cleanup: flag(random) }),
  () => ({ type: "BPEDecoder", suffix: "</w>" }), (random) => ({ type: "CTC", pad_token: "a", word_delimiter_token: "▁", cleanup: flag(random) }),
  (random) => ({ type: "Replace", pattern: { String: pick(random, ["▁", "a"]) }, content: pick(random, [" ", "b"]) }),
  (random) => ({ type: "Strip", content: pick(random, [" ", "a"]), start: Math.floor(random() * 3), stop: 0 }),
  (random) => ({ type: "Metaspace", replacement: "▁", prepend_scheme: pick(random, ["always", "first", "never"]), split: true })];

// None, one, or a sequence.
function some(random, makers, name) {
  const count = Math.floor(random() * 4);
  if (count === 0) return null;
  const parts = Array.from({ length: count }, () => pick(random, makers)(random));
  return count === 1 ? parts[0] : { type: "Sequence", [name]: parts };
}

export function combination(random) {
  const model = pick(random, models);
  const contents = ["<mask>", "<s>", "Day", "é", "hello", "ll", "[CLS]", "中"];
  const added = contents.filter(() => random() < 0.4).map((content, id) => ({
    id, content, single_word: flag(random), lstrip: flag(random), rstrip: flag(random), normalized: flag(random), special: false }))
    .map((token) => (token.normalized ? { ...token, rstrip: false } : token));  // the library cannot take these where texts overlap
  const decoder = some(random, decoders, "decoders");
  return JSON.stringify({
    version: "1.0", truncation: null, padding: null, added_tokens: added, normalizer: some(random, normalizers, "normalizers"),
    pre_tokenizer: some(random, splitters, "pretokenizers"), post_processor: null, decoder, model });
}
