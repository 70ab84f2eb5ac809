// A "Precompiled" normalizer such as SentencePiece writes: a double array from texts to places in a list of texts.
const rules = new Map([
  ["ﬁ", "fi"], ["ﬀ", "ff"], ["①", "1"], ["½", "1⁄2"], ["\u00a0", " "], ["\u3000", " "], ["\t", " "], ["\n", " "], ["\r", " "], ["e\u0301", "é"],
  ["\u0301", ""], ["\u0007", ""], ["Å", "Å"], ["㎏", "kg"], ["Ａ", "A"], ["ｂ", "b"], ["ｃ", "c"], ["À", "À"], ["가", "각각"], ["A\u0300", "À"],
  ["\u200b", " "], ["İ", "i"], ["👍", "+"], ["ab", "x"], ["abc", "y"], ["²", "2"]]);

function doubleArray(entries) {
  const root = { children: new Map() };
  for (const [key, value] of entries) {
    let node = root;
    for (const byte of Buffer.from(key)) {
      if (!node.children.has(byte)) node.children.set(byte, { children: new Map() });
      node = node.children.get(byte);
    }
    node.value = value;
  }
  const units = [];
  const taken = new Set([0]);
  // A child stands at base ^ label; label 0 holds a value. The distance from a node to its base is kept in its unit.
  const place = (node, at) => {
    const labels = [...node.children.keys()];
    if (node.value !== undefined) labels.unshift(0);
    let base = 1;
    while (labels.some((label) => taken.has(base ^ label)) || taken.has(`base${base}`) || (base ^ at) >= 1 << 21) ++base;
    taken.add(`base${base}`);
    for (const label of labels) taken.add(base ^ label);
    units[at] = ((units[at] ?? 0) | ((base ^ at) << 10) | (node.value !== undefined ? 1 << 8 : 0)) >>> 0;
    if (node.value !== undefined) units[base] = (0x80000000 | node.value) >>> 0;
    for (const [label, child] of node.children) units[base ^ label] = label;
    for (const [label, child] of node.children) place(child, base ^ label);
  };
  place(root, 0);
  return units;
}

function build() {
  let texts = "";
  const entries = [];
  for (const [key, value] of rules) {
    entries.push([key, Buffer.byteLength(texts)]);
    texts += `${value}\0`;
  }
  const units = doubleArray(entries);
  const size = Math.ceil((units.length + 1) / 256) * 256;
  const bytes = Buffer.alloc(4 + size * 4);
  bytes.writeUInt32LE(size * 4, 0);
  units.forEach((unit, i) => bytes.writeUInt32LE(unit >>> 0, 4 + 4 * i));
  return Buffer.concat([bytes, Buffer.from(texts)]).toString("base64");
}

export const charsmap = build();
