// The parts of the web page that need neither a browser nor a server.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { sourceFolder } from "./support/processes.mjs";

const part = (name) => import(join(sourceFolder, "src/net/page", name));
const { blocks, grown } = await part("markdown.js");
const { inline } = await part("inline.js");
const tree = await part("conversation.js");
const reply = await part("reply.js");

const plain = (nodes) => nodes.map((node) => (typeof node === "string" ? node : plain(node.children ?? [node.text ?? ""]))).join("");
const kinds = (text) => blocks(text).map((block) => block.type);

test("Markdown becomes a tree of blocks", () => {
  const text = "# Title\n\nSome *words* in\ntwo lines.\n\n```js\nlet a = 1;\n\n# no title\n```\n- one\n- two\n  - deep\n\n1. first\n2. second\n\n" +
    "> said\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n---\n\n$$\nx^2\n$$\n";
  assert.deepEqual(kinds(text), ["heading", "paragraph", "code", "list", "list", "quote", "table", "rule", "maths"]);
  const [, , code, list, numbered, , table] = blocks(text);
  assert.deepEqual([code.language, code.text], ["js", "let a = 1;\n\n# no title"]);
  assert.deepEqual(list.items.map((item) => item.children.map((child) => child.type)), [["paragraph"], ["paragraph", "list"]]);
  assert.deepEqual([numbered.ordered, numbered.first, numbered.items.length], [true, 1, 2]);
  assert.deepEqual([table.header, table.align, table.rows], [["a", "b"], ["left", "right"], [["1", "2"]]]);
});

test("what stands within a line is read as its author meant it", () => {
  assert.deepEqual(inline("a **b *c* d** `e*f` ~~g~~"), ["a ", { type: "strong", children: ["b ", { type: "em", children: ["c"] }, " d"] }, " ",
    { type: "code", text: "e*f" }, " ", { type: "del", children: ["g"] }]);
  assert.deepEqual(inline("[to](https://a.example/x)"), [{ type: "link", href: "https://a.example/x", children: ["to"] }]);
  assert.deepEqual(inline("snake_case_name, 2 * 3 * 4, $5 and $6"), ["snake_case_name, 2 * 3 * 4, $5 and $6"]);
  assert.deepEqual(inline("$x^2$ and \\(y\\)"), [{ type: "maths", text: "x^2" }, " and ", { type: "maths", text: "y" }]);
  assert.equal(plain(inline("\\*not\\* https://a.example/b.")), "*not* https://a.example/b.");
});

test("a link goes nowhere but to the web or to mail", () => {
  for (const href of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "//a.example", "/docs", "java\tscript:x", " javascript:x"])
    assert.ok(!JSON.stringify(inline(`[a](${href}) <${href}>`)).includes('"link"'), href);
});

test("HTML in an answer is text", () => {
  const hostile = '<script>alert(1)</script> <img src=x onerror=alert(1)> <a href="javascript:alert(1)">x</a>';
  assert.deepEqual(kinds(hostile), ["paragraph"]);
  assert.equal(plain(inline(hostile)), hostile);
});

test("an answer that grows gives the tree of the whole", () => {
  const text = "Some *words*\n\n- a\n- b\n\n  more\n\nText | with\n--- | ---\n1 | 2\n\n```\ncode\n```\n\n> quote\nlazy\n\n1. x\n\n   y\n2. z\n\nEnd $a$ \\[b\\]\n";
  let found = [];
  for (let end = 1; end <= text.length; ++end) {
    const part = text.slice(0, end);
    found = grown(found, part);
    assert.deepEqual(found, blocks(part), JSON.stringify(part));
  }
  assert.ok(found.length > 6);
});

test("hostile text of 200,000 characters is read, too", () => {
  for (const part of ["[", "](", "[a](", "*", "_a ", "**a ", "`", "`a``", "> ", "- ", "1. ", "$", "$a", "\\(", "<", "|", "|-", "#", "\\", "http://", "![", "***"]) {
    const text = part.repeat(200_000 / part.length);
    for (const each of [text, text.replaceAll(" ", "\n"), `${text}\n|-|`]) assert.ok(blocks(each).length > 0, part);
    inline(text);
  }
});

test("an edit and another answer are branches", () => {
  const conversation = tree.create();
  const asked = tree.append(conversation, null, { role: "user", content: "One" });
  const first = tree.append(conversation, asked.id, { role: "assistant", content: "1" });
  const second = tree.append(conversation, asked.id, { role: "assistant", content: "2" });
  const edited = tree.append(conversation, null, { role: "user", content: "Two" });
  assert.deepEqual(tree.path(conversation), [edited]);
  tree.choose(conversation, asked);
  assert.deepEqual(tree.path(conversation), [asked, second]);
  tree.choose(conversation, first);
  assert.deepEqual(tree.messages(tree.path(conversation), "Be brief."), [{ role: "system", content: "Be brief." }, { role: "user", content: "One" },
    { role: "assistant", content: "1" }]);
  assert.deepEqual(tree.siblings(conversation, first), [first, second]);
  assert.equal(conversation.title, "One");
});

test("a stream's pieces make the answer", () => {
  const node = { content: "" };
  const delta = (value, more = {}) => reply.apply(node, { choices: [{ delta: value, ...more }] });
  delta({ reasoning_content: "Hm" });
  delta({ content: "Hel" }, { logprobs: { content: [{ token: "Hel", logprob: -0.5, top_logprobs: [{ token: "Hel", logprob: -0.5 }] }] } });
  delta({ content: "lo" });
  delta({ tool_calls: [{ index: 0, id: "call_1", function: { name: "add", arguments: '{"a":' } }] });
  delta({ tool_calls: [{ index: 0, function: { arguments: "1}" } }] }, { finish_reason: "tool_calls" });
  reply.apply(node, { choices: [], usage: { completion_tokens: 4 } });
  assert.deepEqual(node, { content: "Hello", reasoning: "Hm", tokens: [{ token: "Hel", logprob: -0.5, others: [["Hel", -0.5]] }],
    calls: [{ id: "call_1", name: "add", arguments: '{"a":1}' }], finish: "tool_calls", usage: { completion_tokens: 4 } });
  assert.throws(() => reply.apply(node, { error: { message: "ended" } }), /ended/);
});

test("settings that are left empty are not sent", () => {
  const body = reply.request_body([], { model: "m", temperature: "0", top_p: "", schema: '{"type":"object"}', thinking: "off", stop: "a\nb" });
  assert.deepEqual(Object.keys(body).sort(), ["chat_template_kwargs", "messages", "model", "response_format", "stop", "stream", "stream_options", "temperature"]);
  assert.deepEqual([body.temperature, body.stop, body.chat_template_kwargs], [0, ["a", "b"], { enable_thinking: false }]);
});
