// Random texts in many scripts, and a table of texts where tokenizers go wrong.

// mulberry32
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export const pick = (random, list) => list[Math.floor(random() * list.length)];

// Blocks whose characters have been assigned since Unicode 8: what came later differs between the tables of libraries.
const blocks = [
  [0x01, 0x7f], [0x80, 0x24f], [0x250, 0x36f], [0x370, 0x3ff], [0x400, 0x52f], [0x531, 0x58f], [0x591, 0x5f4], [0x600, 0x6ff],
  [0x901, 0x97f], [0x981, 0x9fb], [0xa01, 0xa75], [0xe01, 0xe5b], [0x10a0, 0x10ff], [0x1100, 0x11ff], [0x1680, 0x169c], [0x1780, 0x17f9],
  [0x1e00, 0x1fff], [0x2000, 0x206f], [0x2070, 0x209c], [0x20a0, 0x20be], [0x20d0, 0x20f0], [0x2100, 0x218b], [0x2190, 0x22ff],
  [0x2460, 0x24ff], [0x2500, 0x27bf], [0x2e80, 0x2fd5], [0x3000, 0x303f], [0x3041, 0x30ff], [0x3131, 0x318e], [0x3200, 0x33ff],
  [0x4e00, 0x9fcc], [0xac00, 0xd7a3], [0xe000, 0xe010], [0xf900, 0xfad9], [0xfb00, 0xfb4f], [0xfe20, 0xfe26], [0xfe30, 0xfe6b],
  [0xff01, 0xffee], [0xfffd, 0xfffd], [0x1d400, 0x1d7ff], [0x1f130, 0x1f189], [0x1f300, 0x1f5ff], [0x20000, 0x2a6d6], [0x2f800, 0x2fa1d]];
const unsettled = /[\p{Cn}\u180e\u0378-\u037f\u052a-\u052f\u10fd-\u10ff\u10d0-\u10fa\u2e80-\u2fd5\u302a-\u302d\u32ff\u061c\u061d\u{1f16a}-\u{1f16f}]/u;

function randomCharacter(random) {
  for (;;) {
    const [first, last] = pick(random, blocks);
    const character = String.fromCodePoint(first + Math.floor(random() * (last - first + 1)));
    if (!unsettled.test(character)) return character;
  }
}

const fragments = [
  " ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u00a0", "\u3000", "\u2003", "\u2028", "\u0085",
  "a", "b", "hello", "Hello", "HELLO", "world", "the", "The", "don't", "I'll", "WE'RE", "it's", "y'all'd", "'ſ", "n't", "un", "##able",
  "1", "12", "123", "1234567", "3.14", "½", "٣٤", "Ⅷ", "²", "０１",
  ".", ",", "!", "?", "...", "?!", "-", "_", "__", "$", "+", "<", ">", "=", "^", "~", "|", "`", "@", "#", "\"", "'", "’", "«", "»", "。", "、", "！",
  "é", "e\u0301", "ü", "ñ", "ß", "İ", "ı", "ǅ", "Ω", "Å", "ﬁ", "ﬀ", "①", "㎏", "Ａｂｃ", "q\u0323\u0307", "q\u0307\u0323", "\u0301",
  "Привет", "мир", "ёлка", "γειά", "σας", "שלום", "שָׁלוֹם", "مرحبا", "العَرَبِيَّة", "नमस्ते", "क्षि", "দেশ", "สวัสดี", "ภาษาไทย", "한국어", "각", "각",
  "中文", "字", "日本語", "ひらがな", "カタカナ", "ー", "漢字かな", "𠀀", "𝔘𝔫𝔦", "𝟘",
  "😀", "👨‍👩‍👧", "👍🏽", "🇩🇪", "❤️", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u0000", "\u0007", "\u007f", "\ufffd", "\u2581", "▁a", "▁▁",
  "<s>", "</s>", "<unk>", "<pad>", "[UNK]", "[CLS]", "[MASK]", "<|im_end|>", "<|endoftext|>", "<tool>", "<tool>s", "Day", "day", "<mask>",
  "<0x41>", "<0xE4>", "http://a.b/c?d=e", "foo_bar(x);", "CamelCase", "x=1;y=2", "    return", "\\n", "{\"a\":[1,2]}"];

export function randomText(random) {
  let text = "";
  for (let n = Math.floor(random() * 14); n > 0; --n) {
    const kind = random();
    if (kind < 0.75) text += pick(random, fragments);
    else if (kind < 0.95) text += randomCharacter(random);
    else text += pick(random, fragments).repeat(1 + Math.floor(random() * 4));
  }
  return text;
}

export const table = [
  "", " ", "  ", "\n", "a", " a", "a ", " a ", "  a  b  ", "Hello, world!", "Hello  World  123 4567", "I'LL don't WE'VE it's",
  "Ünïcödé e\u0301 q\u0323\u0307 ﬁ ① ½", "Straße İstanbul ıspanak", "Привет, мир! Как дела?", "Γειά σου Κόσμε", "שלום עולם", "مرحبا بالعالم",
  "नमस्ते दुनिया", "สวัสดีชาวโลก", "안녕하세요 세계", "你好，世界！", "こんにちは世界ー", "漢字とカタカナ", "😀👨‍👩‍👧👍🏽🇩🇪❤️", "𠀀𝔘𝔫𝔦𝟘",
  "def f(x):\n    return x**2  # comment\n\n\n", "a\tb\r\nc\u00a0d\u3000e", "price: $12,345.67 (≈ €11.000,00)", "http://example.com/?q=a+b&c=%20",
  "<s>text</s>", "a<s> b </s>c", "<|im_start|>user\nhi<|im_end|>\n", "x <mask> y", "Monday Day day", "<tool>s<tool>", "\u2581a\u2581\u2581b",
  "\u0000\u0001\u0007\u007f\u0085\u200b\ufeff\ufffd", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "'ſ 'S", "unaffordable ##able", "----====~~~~"];
