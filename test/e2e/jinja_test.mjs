// The committed table of conversations, whose renders by Jinja2 this project's interpreter equals (test/text/jinja_cases_test.cpp),
// against @huggingface/jinja.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Template } from "@huggingface/jinja";
import { sourceFolder } from "./support/processes.mjs";

const table = JSON.parse(readFileSync(path.join(sourceFolder, "test/text/jinja_cases/cases.json")));

// Where it cannot follow Jinja2: JavaScript does not tell 1.0 from 1, and these filters are not in it.
const lacks = /Unknown \w+ filter|Cannot apply filter|`map` expressions without `attribute`/;
const numbers = (entry) => /\d\.0\b|\de[+-]?\d|-0\b/.test(entry.expected);

for (const name of ["demo", "qwen_style", "turns", "typed_tools"]) {
  test(`${name} renders alike`, () => {
    let equal = 0;
    for (const entry of table.cases.filter((candidate) => candidate.template === name && typeof candidate.expected === "string")) {
      let rendered;
      try {
        rendered = new Template(table.templates[name]).render({
          ...entry.kwargs, messages: entry.messages, tools: entry.tools ?? null, documents: entry.kwargs?.documents ?? null,
          bos_token: table.bos_token, eos_token: table.eos_token, add_generation_prompt: entry.add_generation_prompt ?? true });
      } catch (error) {
        assert.match(error.message, lacks, `${name} with ${entry.name}`);
        continue;
      }
      if (rendered !== entry.expected && numbers(entry)) continue;
      assert.equal(rendered, entry.expected, `${name} with ${entry.name}`);
      ++equal;
    }
    assert.ok(equal >= 10, `only ${equal} conversations could be compared`);
  });
}
