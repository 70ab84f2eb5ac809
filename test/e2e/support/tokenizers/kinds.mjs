// Tokenizers of every kind that models come with, small, as texts of tokenizer.json; together they have every component of the library.
import { byteLevelBpe, characterBpe, unigram, wordLevel, wordPiece } from "./training.mjs";
import { charsmap } from "./charsmap.mjs";

const added = (content, options = {}) => ({
  content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...options });

const byteLevel = (options = {}) => ({ type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true, ...options });
const sequence = (name, parts) => ({ type: "Sequence", [name]: parts });
const split = (regex, behavior = "Isolated", invert = false) => ({ type: "Split", pattern: { Regex: regex }, behavior, invert });
const splitText = (text, behavior = "Isolated", invert = false) => ({ type: "Split", pattern: { String: text }, behavior, invert });
const replace = (pattern, content) => ({ type: "Replace", pattern, content });
const metaspace = (prepend_scheme, splits = true) => ({ type: "Metaspace", replacement: "▁", prepend_scheme, split: splits });
const template = (before, after, ids) => ({
  type: "TemplateProcessing",
  single: [...before.map((id) => ({ SpecialToken: { id, type_id: 0 } })), { Sequence: { id: "A", type_id: 0 } },
    ...after.map((id) => ({ SpecialToken: { id, type_id: 0 } }))],
  pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
  special_tokens: Object.fromEntries([...before, ...after].map((id) => [id, { id, ids: [ids[id]], tokens: [id] }])) });
const spaces = sequence("decoders", [replace({ String: "▁" }, " "), { type: "ByteFallback" }, { type: "Fuse" },
  { type: "Strip", content: " ", start: 1, stop: 0 }]);

const llama3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const qwen2 = llama3.replace("{1,3}", "");
const o200k = ["[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  "\\p{N}{1,3}", " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*", "\\s*[\\r\\n]+", "\\s+(?!\\S)", "\\s+"].join("|");
const kimi = ["[\\p{Han}]+",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
  "\\p{N}{1,3}", " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", "\\s*[\\r\\n]+", "\\s+(?!\\S)", "\\s+"].join("|");
const deepseek3 = ["\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"];
const clip = "<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";

const chat = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map((text) => added(text));
const tools = ["<tool>", "<tool>s"].map((text) => added(text, { special: false }));
const classic = ["<unk>", "<s>", "</s>"].map((text) => added(text));
const awkward = [
  added("<mask>", { lstrip: true }), added("<pad>", { rstrip: true }), added("[MASK]", { lstrip: true, rstrip: true }),
  added("Day", { normalized: true, special: false }), added("day", { single_word: true, special: false }),
  added("HELLO", { normalized: true, single_word: true, special: false }), added(" \n ", { special: false }), added("é", { normalized: true, special: false })];

const whole = (parts) => JSON.stringify({
  version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null,
  ...parts, added_tokens: (parts.added_tokens ?? []).map((token, id) => ({ id, ...token })) });

// Each a function, so that only what a run needs is made.
export const kinds = {
  gpt2: () => whole({ model: byteLevelBpe(), pre_tokenizer: byteLevel(), decoder: byteLevel(), post_processor: byteLevel(), added_tokens: chat.slice(0, 1) }),
  roberta: () => whole({
    model: byteLevelBpe({}, { first: ["<s>", "<pad>", "</s>", "<unk>"] }), pre_tokenizer: byteLevel({ add_prefix_space: true }), decoder: byteLevel(),
    post_processor: { type: "RobertaProcessing", sep: ["</s>", 2], cls: ["<s>", 0], trim_offsets: true, add_prefix_space: true },
    added_tokens: [...classic, added("<mask>", { lstrip: true })] }),
  llama3: () => whole({
    model: byteLevelBpe({ ignore_merges: true }), pre_tokenizer: sequence("pretokenizers", [split(llama3), byteLevel({ use_regex: false })]),
    post_processor: sequence("processors", [byteLevel(), template(["<|endoftext|>"], [], { "<|endoftext|>": 756 })]),
    decoder: byteLevel(), added_tokens: [...chat, ...tools] }),
  qwen2: () => whole({
    model: byteLevelBpe(), normalizer: { type: "NFC" }, pre_tokenizer: sequence("pretokenizers", [split(qwen2), byteLevel({ use_regex: false })]),
    decoder: byteLevel(), added_tokens: [...chat, ...tools] }),
  o200k: () => whole({ model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [split(o200k), byteLevel({ use_regex: false })]), decoder: byteLevel() }),
  o200k_inverted: () => whole({
    model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [split(o200k, "Removed", true), byteLevel({ use_regex: false })]), decoder: byteLevel() }),
  kimi: () => whole({ model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [split(kimi), byteLevel({ use_regex: false })]), decoder: byteLevel() }),
  deepseek3: () => whole({
    model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [...deepseek3.map((regex) => split(regex)), byteLevel({ use_regex: false })]),
    decoder: byteLevel(), added_tokens: chat }),
  aya: () => whole({
    model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [split("\\d{1,3}(?=(?:\\d{3})*\\b)"), split(o200k), byteLevel({ use_regex: false })]),
    decoder: byteLevel() }),
  superbpe: () => whole({
    model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [split("\\p{N}+"), split("(?=(\\d{3})+(?!\\d))"), byteLevel({ use_regex: false })]),
    decoder: byteLevel() }),
  afmoe: () => whole({
    model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [split("\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))"), byteLevel({ use_regex: false })]),
    decoder: byteLevel() }),
  starcoder: () => whole({
    model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [{ type: "Digits", individual_digits: true }, byteLevel()]), decoder: byteLevel() }),
  falcon: () => whole({
    model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [{ type: "Punctuation", behavior: "Contiguous" }, byteLevel(),
      { type: "Digits", individual_digits: false }, split("[0-9][0-9][0-9]")]), decoder: byteLevel() }),
  bloom: () => whole({
    model: byteLevelBpe(), pre_tokenizer: sequence("pretokenizers", [split(" ?[^(\\s|[.,!?…。，、।۔،])]+"), byteLevel({ use_regex: false })]),
    decoder: byteLevel() }),
  byte_level_normalizer: () => whole({
    model: byteLevelBpe(), normalizer: sequence("normalizers", [{ type: "NFKC" }, { type: "ByteLevel" }]), decoder: byteLevel() }),
  llama2: () => whole({
    model: characterBpe(), normalizer: sequence("normalizers", [{ type: "Prepend", prepend: "▁" }, replace({ String: " " }, "▁")]),
    post_processor: template(["<s>"], [], { "<s>": 1 }), decoder: spaces, added_tokens: classic }),
  gemma: () => whole({
    model: characterBpe(), normalizer: replace({ String: " " }, "▁"), pre_tokenizer: splitText(" ", "MergedWithPrevious"),
    post_processor: template(["<s>"], ["</s>"], { "<s>": 1, "</s>": 2 }), decoder: spaces, added_tokens: [...classic, ...tools] }),
  metaspace_first: () => whole({
    model: characterBpe(), pre_tokenizer: metaspace("first", false), decoder: metaspace("first"), added_tokens: [...classic, ...awkward] }),
  metaspace_first_split: () => whole({
    model: characterBpe({ fuse_unk: false }, { bytes: false }), pre_tokenizer: metaspace("first"), decoder: metaspace("first"), added_tokens: awkward }),
  metaspace_stripped: () => whole({
    model: characterBpe(), normalizer: { type: "Strip", strip_left: true, strip_right: true }, pre_tokenizer: metaspace("first"), decoder: metaspace("never") }),
  metaspace_always: () => whole({
    model: characterBpe(), normalizer: { type: "NFKD" }, pre_tokenizer: metaspace("always"), decoder: metaspace("always"), added_tokens: classic }),
  metaspace_never: () => whole({ model: characterBpe(), pre_tokenizer: metaspace("never"), decoder: metaspace("never") }),
  t5: () => whole({
    model: unigram(), normalizer: { type: "Precompiled", precompiled_charsmap: charsmap },
    pre_tokenizer: sequence("pretokenizers", [{ type: "WhitespaceSplit" }, metaspace("always")]),
    post_processor: template([], ["</s>"], { "</s>": 2 }), decoder: metaspace("always"), added_tokens: classic }),
  xlnet: () => whole({
    model: unigram({}, { bytes: true }), normalizer: sequence("normalizers", [replace({ String: "``" }, "\""), replace({ String: "''" }, "\""),
      { type: "NFKD" }, { type: "StripAccents" }, { type: "Lowercase" }, { type: "Precompiled", precompiled_charsmap: charsmap },
      replace({ Regex: " {2,}" }, " ")]), pre_tokenizer: metaspace("always"), decoder: metaspace("always"), added_tokens: [...classic, ...awkward] }),
  unigram_whole: () => whole({ model: unigram(), normalizer: { type: "Nmt" }, decoder: { type: "Fuse" }, added_tokens: classic }),
  bert: () => whole({
    model: wordPiece(), normalizer: { type: "BertNormalizer", clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
    pre_tokenizer: { type: "BertPreTokenizer" }, decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    post_processor: { type: "BertProcessing", sep: ["[SEP]", 3], cls: ["[CLS]", 2] },
    added_tokens: ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map((text) => added(text)).concat(added("[MASK]", { lstrip: true })) }),
  bert_cased: () => whole({
    model: wordPiece({ max_input_chars_per_word: 6 }),
    normalizer: { type: "BertNormalizer", clean_text: false, handle_chinese_chars: false, strip_accents: true, lowercase: false },
    pre_tokenizer: { type: "Whitespace" }, decoder: { type: "WordPiece", prefix: "##", cleanup: false }, added_tokens: awkward }),
  word_level: () => whole({ model: wordLevel(), pre_tokenizer: { type: "Whitespace" }, added_tokens: [...classic, ...awkward] }),
  word_level_lower: () => whole({
    model: wordLevel(), normalizer: sequence("normalizers", [{ type: "NFD" }, { type: "Lowercase" }, { type: "StripAccents" }]),
    pre_tokenizer: sequence("pretokenizers", [{ type: "WhitespaceSplit" }, { type: "Punctuation", behavior: "Removed" }]) }),
  clip: () => whole({
    model: characterBpe({}, { mark: "", suffix: "</w>", bytes: false }),
    normalizer: sequence("normalizers", [{ type: "NFC" }, replace({ Regex: "\\s+" }, " "), { type: "Lowercase" }]),
    pre_tokenizer: split(clip, "Removed", true), decoder: { type: "BPEDecoder", suffix: "</w>" }, added_tokens: [added("<|endoftext|>")] }),
  prefixed: () => whole({
    model: characterBpe({}, { mark: "", prefix: "##", bytes: false }), pre_tokenizer: { type: "WhitespaceSplit" },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true } }),
  ctc: () => whole({
    model: wordLevel(), pre_tokenizer: split("", "Isolated"), decoder: { type: "CTC", pad_token: "<s>", word_delimiter_token: "|", cleanup: true } }),
  delimiter: () => whole({ model: characterBpe({}, { mark: "" }), pre_tokenizer: { type: "CharDelimiterSplit", delimiter: "a" } }),
  fixed_length: () => whole({ model: characterBpe({}, { mark: "" }), pre_tokenizer: { type: "FixedLength", length: 3 } }),
  scripts: () => whole({ model: unigram(), pre_tokenizer: sequence("pretokenizers", [{ type: "UnicodeScripts" }, metaspace("first")]) }),
};
