// Tokenizers as tokenizer.json describes them, against the tokenizers library itself: a table of texts and random ones through tokenizers of
// every kind, and through components thrown together. TOKENIZER_TEXTS sets how many random ones each kind gets.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { Tokenizer } from "tokenizers";
import { combination } from "./support/tokenizers/combinations.mjs";
import { kinds } from "./support/tokenizers/kinds.mjs";
import { Probe } from "./support/tokenizers/probe.mjs";
import { randomNumbers, randomText, table } from "./support/tokenizers/random_text.mjs";

const count = Number(process.env.TOKENIZER_TEXTS ?? 400);
const probe = new Probe();
after(() => probe.end());

async function compare(name, json) {
  const library = Tokenizer.fromString(json);
  assert.equal(await probe.load(json), "ok", name);
  const random = randomNumbers(Number(process.env.TOKENIZER_SEED ?? 1));
  for (let done = 0; done < count; ) {
    const texts = done === 0 ? table : Array.from({ length: Math.min(1000, count - done) }, () => randomText(random));
    done = done === 0 ? 1 : done + texts.length;
    const ours = await probe.encode(texts);
    const theirs = (await library.encodeBatch(texts, { addSpecialTokens: true })).map((encoding) => encoding.getIds());
    const words = await library.decodeBatch(theirs.map((ids) => (ids.length === 0 ? [0] : ids)), true);
    texts.forEach((text, i) => {
      assert.deepEqual(ours[i].ids, theirs[i], `${name}: ids of ${JSON.stringify(text)}`);
      if (theirs[i].length > 0) assert.equal(ours[i].text, words[i], `${name}: the text of the tokens of ${JSON.stringify(text)}`);
    });
  }
}

for (const [name, make] of Object.entries(kinds)) test(name, () => compare(name, make()));

// Quadratic time would show as minutes.
test("long texts without spaces", async () => {
  for (const [name, make] of Object.entries(kinds)) {
    const json = make();
    const library = Tokenizer.fromString(json);
    await probe.load(json);
    for (const character of ["a", " ", "1", "中", "A", "'", "\u0301", "\n", "aB", "q\u0307\u0323"]) {
      const text = character.repeat(100_000 / character.length);
      const [{ ids }] = await probe.encode([text]);
      // The library's own time is quadratic for some of these, so that it gets their beginnings.
      const beginning = character.repeat(2000 / character.length);
      const [start] = await probe.encode([beginning]);
      assert.deepEqual(start.ids, (await library.encode(beginning)).getIds(), `${name}: ids of a long text of ${JSON.stringify(character)}`);
      assert.ok(ids.length >= start.ids.length);
    }
  }
});

// What the library cannot read, or fails with on a text, says nothing of this project. Some combinations end its process, so the seed stays.
test("components thrown together", async () => {
  const random = randomNumbers(Number(process.env.TOKENIZER_COMBINATIONS ?? 1006));
  let compared = 0;
  for (let i = 0; i < Math.min(count / 5, 600); ++i) {
    const json = combination(random);
    const texts = Array.from({ length: 30 }, () => randomText(random));
    let library;
    try {
      library = Tokenizer.fromString(json);
    } catch {
      continue;
    }
    const about = () => JSON.stringify({ ...JSON.parse(json), model: JSON.parse(json).model.type });
    assert.equal(await probe.load(json), "ok", about());
    const ours = await probe.encode(texts);
    for (const [at, text] of texts.entries()) {
      let ids;
      let words;
      try {
        ids = (await library.encode(text)).getIds();
        words = ids.length === 0 ? "" : await library.decode(ids, true);
      } catch {
        continue;
      }
      assert.deepEqual(ours[at].ids, ids, `ids of ${JSON.stringify(text)} in ${about()}`);
      if (ids.length > 0) assert.equal(ours[at].text, words, `the text of the tokens of ${JSON.stringify(text)} in ${about()}`);
      ++compared;
    }
  }
  assert.ok(compared > Math.min(count, 5000), `only ${compared} texts could be compared`);
});

for (const folder of ["demo-hf", "stories260K-hf"])
  test(folder, { skip: process.env.BRAID_TEST_DATA === undefined && "BRAID_TEST_DATA is not set" },
    () => compare(folder, readFileSync(path.join(process.env.BRAID_TEST_DATA, "models", folder, "tokenizer.json"), "utf8")));
