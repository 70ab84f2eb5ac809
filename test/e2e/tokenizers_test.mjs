// Tokenizers as tokenizer.json describes them, against the tokenizers library itself: a table of texts and random ones through tokenizers of
// every kind. TOKENIZER_TEXTS sets how many random ones each gets.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { Tokenizer } from "tokenizers";
import { kinds } from "./support/tokenizers/kinds.mjs";
import { Probe } from "./support/tokenizers/probe.mjs";
import { randomNumbers, randomText, table } from "./support/tokenizers/random_text.mjs";

const count = Number(process.env.TOKENIZER_TEXTS ?? 1000);
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

for (const folder of ["demo-hf", "stories260K-hf"])
  test(folder, { skip: process.env.BRAID_TEST_DATA === undefined && "BRAID_TEST_DATA is not set" },
    () => compare(folder, readFileSync(path.join(process.env.BRAID_TEST_DATA, "models", folder, "tokenizer.json"), "utf8")));
