// The web page in a browser: all that a user does with it.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browser, count, finished, open_page, press, send, texts } from "./support/browser.mjs";
import { draw } from "./support/pictures.mjs";
import { share_of_others } from "./support/processor_time.mjs";
import { stream_in_front } from "./support/stream.mjs";
import { longModel, serve, serveScript, sourceFolder, temporaryFolder } from "./support/processes.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const cleanups = [];
const suite = { after: (cleanup) => cleanups.push(cleanup) };
let started, server, script;

const kHostile = '# Hi <script>window.ran=1</script>\n\n<img src=x onerror="window.ran=1"> <svg onload="window.ran=1">\n\n' +
  '[a](javascript:window.ran=1) [b](data:text/html,<script>window.ran=1</script>) <javascript:window.ran=1>\n\n' +
  '```html" onload="window.ran=1\n<script>window.ran=1</script>\n```\n\n| <b onclick="window.ran=1">x</b> |\n|---|\n| <iframe src="javascript:window.ran=1"> |\n\n' +
  '$\\text{<img src=x onerror=window.ran=1>}$ ![x](https://elsewhere.invalid/x.png)';
const kRules = [
  { when: "42 degrees", say: "It is **warm**." },
  { when: "weather", say: '<tool_call>\n{"name": "weather", "arguments": {"city": "Bern"}}\n</tool_call>' },
  { when: "attack", say: kHostile },
  { when: "think", say: "<think>First this, then that.</think>The answer is 4." },
  { when: "Speak as a pirate.", say: "Arr." },
  { when: "Markdown", say: "## A plan\n\n1. Read the *file*\n2. Count its words\n\n```python\nprint(len(open('a').read().split()))\n```\n\n| word | count |\n|---|--:|\n| the | 12 |\n\nThe mean is $\\frac{1}{n}\\sum_{i} x_i$." },
];

// A schema that no short answer fits.
const kEndless = '{"type":"string","minLength":50000}';

before(async () => {
  started = await browser(suite);
  server = await serve(suite, [longModel(suite), "--alias", "braid-demo", "--kv-memory", "256M"]);
  script = await serveScript(suite, kRules);
});
after(async () => { for (const cleanup of cleanups.reverse()) await cleanup(); });

async function set(page, name, value) {
  await page.$eval(`#setting-${name}`, (field, wanted) => {
    if (field.type === "checkbox") field.checked = wanted;
    else field.value = wanted;
    field.dispatchEvent(new Event("input"));
  }, value);
}

test("a message is answered as a stream, and both are there after a reload", async () => {
  const page = await open_page(started, server.url);
  await set(page, "seed", "7");
  await set(page, "max_tokens", "60");
  await send(page, "Tell me a story.");
  const [answer] = await texts(page, ".message.assistant .markdown");
  assert.ok(answer.length > 20);
  assert.match((await texts(page, ".message.assistant .footer"))[0], /tokens\/s/);
  await page.reload();
  await page.waitForSelector("html[data-ready=true]");
  await page.click("#conversation-list .title");
  assert.deepEqual(await texts(page, ".message.assistant .markdown"), [answer]);
  assert.deepEqual(page.faults, []);
});

test("an answer is stopped by the button and by Escape, and its request ends", async () => {
  const page = await open_page(started, server.url);
  await set(page, "max_tokens", "30000");
  await set(page, "schema", kEndless);
  for (const stop of [() => page.click("#stop"), () => page.keyboard.press("Escape")]) {
    await send(page, "Tell me a story that goes on.", { waits: false });
    await page.waitForFunction(() => [...document.querySelectorAll(".message.assistant .markdown")].at(-1)?.textContent.length > 0);
    await stop();
    await finished(page);
    assert.match((await texts(page, ".message.assistant .footer")).at(-1), /stopped$/);
  }
  await page.waitForFunction(async () => !(await (await fetch("slots")).json()).some((slot) => slot.request));
  assert.deepEqual(page.faults, []);
});

test("another answer and an edit are branches, and one goes between them", async () => {
  const page = await open_page(started, server.url);
  await set(page, "max_tokens", "12");
  await send(page, "One.");
  await press(page, "Again");
  await finished(page);
  assert.deepEqual(await texts(page, ".message.assistant .place"), ["2 of 2"]);
  await press(page, "Edit");
  await page.keyboard.type(" And two.");
  await press(page, "Send as a branch");
  await finished(page);
  assert.deepEqual(await texts(page, ".message.user .plain"), ["One. And two."]);
  await press(page, "Earlier branch", ".message.user");
  assert.deepEqual(await texts(page, ".message.user .plain"), ["One."]);
  assert.deepEqual(await texts(page, ".message.assistant .place"), ["2 of 2"]);
  await press(page, "Earlier branch", ".message.assistant");
  assert.deepEqual(await texts(page, ".message.assistant .place"), ["1 of 2"]);
  assert.deepEqual(page.faults, []);
});

test("what a model says never becomes HTML", async () => {
  const page = await open_page(started, script.url);
  await send(page, "Please attack.");
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.equal(await count(page, "#messages :is(script, iframe, img, svg, b)"), 0);
  assert.deepEqual(await page.$$eval("#messages a", (links) => links.map((link) => link.href)), ["https://elsewhere.invalid/x.png"]);
  assert.equal(await page.$$eval("#messages *", (all) => all.filter((each) => [...each.attributes].some(({ name }) => name.startsWith("on"))).length), 0);
  assert.match((await texts(page, ".message.assistant .markdown"))[0], /<script>window\.ran=1<\/script>/);
  // Even the page's own code could not make HTML of it, nor run what is no file of the server.
  const refused = await page.evaluate(() => {
    try { document.body.innerHTML = "<b>x</b>"; return ""; } catch (error) { return error.message; }
  });
  assert.match(refused, /TrustedHTML/);
  assert.deepEqual(page.faults.filter((fault) => !/TrustedHTML/.test(fault)), []);
});

test("Markdown, formulas, thoughts and calls of tools are shown", async () => {
  const page = await open_page(started, script.url);
  await send(page, "Some Markdown");
  assert.deepEqual(await texts(page, ".markdown :is(h4, li, td)"), ["A plan", "Read the file", "Count its words", "the", "12"]);
  assert.equal(await count(page, ".markdown math mfrac"), 1);
  await send(page, "Now think");
  assert.equal(await page.$eval(".thinking", (details) => details.open), false);
  await page.click(".thinking summary");
  await page.waitForFunction(() => document.querySelector(".thinking .markdown").textContent === "First this, then that.");
  await press(page, "New conversation");
  await set(page, "tools", JSON.stringify([{ type: "function", function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } } }]));
  await send(page, "How is the weather?");
  assert.deepEqual(await texts(page, ".call h4 code"), ["weather"]);
  assert.match((await texts(page, ".call pre"))[0], /"city": "Bern"/);
  await page.type(".call textarea", "42 degrees");
  await press(page, "Give result");
  await finished(page);
  assert.equal((await texts(page, ".message.assistant .markdown")).at(-1), "It is warm.");
  assert.deepEqual(page.faults, []);
});

test("the system prompt and the choice of thinking go with each message", async () => {
  const page = await open_page(started, script.url);
  const bodies = [];
  page.on("request", (request) => { if (request.url().endsWith("/v1/chat/completions")) bodies.push(JSON.parse(request.postData())); });
  await page.type("#setting-system", "Speak as a pirate.");
  await send(page, "Hello there.");
  assert.equal((await texts(page, ".message.assistant .markdown")).at(-1), "Arr.");
  assert.deepEqual(bodies[0].messages, [{ role: "system", content: "Speak as a pirate." }, { role: "user", content: "Hello there." }]);
  for (const [chosen, kwargs] of [["on", { enable_thinking: true }], ["off", { enable_thinking: false }], ["", undefined]]) {
    await page.select("#setting-thinking", chosen);
    await send(page, "Again.");
    assert.deepEqual(bodies.at(-1).chat_template_kwargs, kwargs);
  }
  await page.reload();
  await page.waitForSelector("html[data-ready=true]");
  assert.equal(await page.$eval("#setting-system", (field) => field.value), "Speak as a pirate.");
  assert.deepEqual(page.faults, []);
});

test("an answer keeps to a schema, and tells the probabilities of its tokens", async () => {
  const page = await open_page(started, server.url);
  await set(page, "schema", '{"type":"object","properties":{"name":{"type":"string","maxLength":20}},"required":["name"],"additionalProperties":false}');
  await set(page, "probabilities", true);
  await set(page, "max_tokens", "100");
  await send(page, "A name.");
  assert.deepEqual(Object.keys(JSON.parse((await texts(page, ".message.assistant .markdown"))[0])), ["name"]);
  await press(page, "Probabilities");
  await page.hover(".token-text span");
  assert.match((await texts(page, ".tip caption"))[0], /\d%$/);
  await page.focus(".token-text");
  await page.keyboard.press("ArrowRight");
  assert.equal(await count(page, ".token-text .current"), 1);
  assert.match((await texts(page, "#status"))[0], /%/);
  await set(page, "schema", '{"type":');
  await send(page, "Again.");
  assert.match((await texts(page, ".message .error")).at(-1), /In the settings/);
  assert.deepEqual(page.faults, []);
});

test("a conversation is saved as a file, and deleted", async () => {
  const page = await open_page(started, script.url);
  const folder = temporaryFolder(suite);
  const session = await page.createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder, browserContextId: page.browserContext().id, eventsEnabled: true });
  await send(page, "Some Markdown");
  for (const [label, name, words] of [["As Markdown", "Some-Markdown.md", /## You\n\nSome Markdown/], ["As JSON", "Some-Markdown.json", /"role": "user"/]]) {
    const done = new Promise((resolve) => session.on("Browser.downloadProgress", ({ state }) => { if (state === "completed") resolve(); }));
    await press(page, label);
    await done;
    assert.match(readFileSync(join(folder, name), "utf8"), words);
  }
  await press(page, "Delete Some Markdown");
  await page.waitForFunction(() => document.querySelectorAll("#conversation-list li").length === 0);
  assert.deepEqual(page.faults, []);
});

test("images may be attached only where the model sees", async () => {
  const page = await open_page(started, server.url);
  assert.equal(await page.$eval("#attach", (label) => label.hidden), true);
});

test("an image that is attached is asked about, and stays in the conversation", async () => {
  const eyes = join(sourceFolder, "models/demo-eyes");
  const seeing = await serve(suite, ["--mmproj", join(eyes, "mmproj.gguf"), "--lora", `eyes=${eyes}`, "--kv-memory", "64M"]);
  const file = join(temporaryFolder(suite), "picture.png");
  writeFileSync(file, draw({ things: [{ shape: "star", colour: "red", cell: 2 }, { shape: "circle", colour: "blue", cell: 6 }] }));
  const page = await open_page(started, seeing.url);
  await page.select("#setting-model", "eyes");
  await set(page, "temperature", "0");
  await page.waitForFunction(() => !document.querySelector("#attach").hidden);
  const field = await page.$("#attach-file");
  await field.uploadFile(file);
  await page.waitForSelector("#attached img");
  await send(page, "What colour is the star?");
  assert.equal((await texts(page, ".message.assistant .markdown")).at(-1).trim(), "The star is red.");
  await send(page, "Where is the blue circle?");
  assert.equal((await texts(page, ".message.assistant .markdown")).at(-1).trim(), "The blue circle is at the bottom left.");
  await page.reload();
  await page.waitForSelector("html[data-ready=true]");
  await page.click("#conversation-list .title");
  assert.equal(await count(page, ".message.user img"), 1);
  assert.deepEqual(page.faults, []);
});

test("where keys are on the page asks for one", async () => {
  const keys = join(temporaryFolder(suite), "keys");
  writeFileSync(keys, "alice sk-1234567890\n", { mode: 0o600 });
  const closed = await serve(suite, ["--kv-memory", "64M", "--api-key-file", keys]);
  const page = await open_page(started, closed.url, { ready: false });
  await page.waitForSelector("#key-dialog[open]");
  await page.type("#key-field", "sk-1234567890");
  await page.click("#key-keep");
  await page.waitForFunction(() => document.querySelector("#setting-model").value !== "");
  await set(page, "max_tokens", "8");
  await send(page, "Hello.");
  assert.equal(await count(page, ".message .error"), 0);
});

test("the engine room shows what /metrics says", async () => {
  const page = await open_page(started, server.url);
  await set(page, "max_tokens", "30000");
  await set(page, "schema", kEndless);
  await send(page, "Tell me a story that goes on.", { waits: false });
  await page.click("#to-engine");
  await page.waitForFunction(() => document.querySelectorAll(".sequences tbody tr").length === 1);
  assert.match((await texts(page, ".sequences tbody td"))[1], /decode|prefill/);
  // Two readings, with tokens between them.
  await page.waitForFunction(() => document.querySelectorAll(".pool svg rect.held").length > 1 &&
    Number(document.querySelector(".chart strong").textContent.replaceAll(",", "")) > 0);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const shown = (await texts(page, ".pool li strong")).map((text) => Number(text.replaceAll(",", "")));
  assert.equal(shown.reduce((sum, each) => sum + each), Number(metrics.match(/^braid_kv_blocks_total (\d+)/m)[1]));
  // Figures that stand still while one sequence writes; those of time are bounds of the histogram.
  const figures = () => page.$$eval(".figures > div", (all) => Object.fromEntries(all.map((each) => [each.querySelector("dt").textContent, each.querySelector("dd").textContent])));
  const told = (name) => Number(metrics.match(new RegExp(`^braid_${name}(?:\\{[^}]*\\})? (\\S+)$`, "m"))[1]);
  const seen = await figures();
  for (const [name, figure] of [["Waiting", "sequences_waiting"], ["Writing", "sequences_decoding"], ["Reading prompts", "sequences_prefilling"],
    ["Held up by readers", "sequences_stalled"], ["Set back", "sequences_preempted"], ["Evictions", "prefix_cache_evictions_total"]])
    assert.equal(seen[name], told(figure).toLocaleString("en"), name);
  const bounds = [...metrics.matchAll(/^braid_inter_token_latency_ms_bucket\{.*le="([^"]+)"/gm)].map(([, bound]) => Number(bound));
  for (const name of ["p50", "p95", "p99"]) {
    const bound = seen[`Between tokens, ${name}`];
    assert.ok(bound === "more" || bounds.includes(Number(bound.match(/^≤ (\S+) ms$/)[1])), bound);
  }
  await page.setViewport({ width: 1280, height: 920 });  // with the log
  await shoot(page, "engine-room");
  await page.click("#to-chat");
  await page.click("#stop");
  await finished(page);
  await page.click("#to-engine");
  await page.waitForFunction(() => document.querySelectorAll(".sequences tbody tr").length === 0);
  server.child.kill("SIGUSR1");
  await page.waitForFunction(() => document.querySelector(".log").textContent.includes("SIGUSR1"));
  assert.deepEqual(page.faults, []);
});

test("models are loaded and unloaded in the engine room", async () => {
  const many = await serve(suite, ["--models-dir", join(sourceFolder, "models"), "--kv-memory", "64M"]);
  const page = await open_page(started, many.url);
  await page.click("#to-engine");
  const id = (await (await fetch(`${many.url}/v1/models`)).json()).data.find((model) => model.status.value === "unloaded").id;
  for (const [label, state] of [["Load", "loaded"], ["Unload", "unloaded"]]) {
    await page.waitForSelector(`.models button[aria-label="${label} ${id}"]`);
    await press(page, `${label} ${id}`);
    await page.waitForFunction((name, value) => [...document.querySelectorAll(".models li")].some((item) =>
      item.querySelector("code")?.textContent === name && item.textContent.split(/[ ,]+/).includes(value)), {}, id, state);
  }
  assert.deepEqual(page.faults, []);
});

test("/docs shows every route, with its policy in force", async () => {
  const api = await (await fetch(`${server.url}/openapi.json`)).json();
  const page = await open_page(started, `${server.url}/docs`, { ready: false, host: server.url });
  const routes = Object.values(api.paths).reduce((sum, operations) => sum + Object.keys(operations).length, 0);
  await page.waitForFunction((all) => document.querySelectorAll("summary").length === all, {}, routes);
  assert.equal(await page.$eval("h2", (heading) => getComputedStyle(heading).textTransform), "capitalize");
  assert.deepEqual(page.faults, []);
});

// With BRAID_SCREENSHOTS set to a folder, the pictures of the documents are written there.
async function shoot(page, name) {
  const folder = process.env.BRAID_SCREENSHOTS;
  if (!folder) return;
  if (!existsSync(folder)) mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

test("axe finds nothing against it, in light and dark, wide and narrow", async () => {
  for (const [media, width] of [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]]) {
    const page = await open_page(started, script.url, { media, width });
    await send(page, "Some Markdown");
    await send(page, "Now think");
    if (width < 960) await press(page, "Settings", ".panel-buttons");
    for (const view of ["chat", "engine"]) {
      await page.evaluate((name) => { location.hash = name; }, view);
      if (view === "engine") await page.waitForFunction(() => document.querySelector(".pool strong").textContent !== "–");
      const session = await page.createCDPSession();  // past the page's own policy
      await session.send("Runtime.evaluate", { expression: axe });
      const { violations } = await page.evaluate(() => axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)]), [], `${view} ${media} ${width}`);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${view} ${width} scrolls sideways`);
    }
    if (media === "light" && width === 1280) {
      await page.evaluate(() => { location.hash = "chat"; });
      await shoot(page, "chat");
    }
  }
});

test("everything is reached by the keyboard", async () => {
  const page = await open_page(started, script.url);
  await send(page, "Some Markdown");
  await page.evaluate(() => document.activeElement.blur());
  const reached = new Set();
  for (let i = 0; i < 60; ++i) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute("aria-label") || document.activeElement.textContent));
  }
  for (const name of ["to-engine", "key-button", "new-conversation", "Some Markdown", "messages", "Edit", "Again", "composer-text", "setting-model", "setting-system", "Parameters"])
    assert.ok(reached.has(name), `${name} among ${[...reached].join(" | ")}`);
});

const kParts = {
  "of all kinds": (i) => `## Part ${i}\n\nSome *words* about \`item_${i}\`, with [a link](https://a.example/${i}) and **more** of them.\n\n- one\n- two\n\n` +
    `\`\`\`js\nconst value_${i} = ${i};\n\`\`\`\n\n| a | b |\n|---|---|\n| ${i} | 2 |\n\n`,
  "that is one paragraph": (i) => `and so the ${i}th of the words goes on `,
};

// Shows the stream at `url` in a new page, which marks each of its frames: 95% of the gaps between them lie within `shown` milliseconds, in
// 95% the page itself worked `own` at most (processor time of its thread), and others had `busy` of the machine's processors meanwhile.
async function watch(url) {
  const page = await open_page(started, url);
  await page.evaluate(() => {
    window.added = 0;
    const frame = () => { performance.mark("frame"); requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
    new MutationObserver((records) => { for (const record of records) window.added += record.addedNodes.length; })
      .observe(document.querySelector("#messages"), { childList: true, subtree: true });
  });
  const others = share_of_others();
  await page.tracing.start({ categories: ["blink.user_timing"] });
  await send(page, "Much.");
  const { traceEvents } = JSON.parse(Buffer.from(await page.tracing.stop()).toString());
  const busy = others();
  const frames = traceEvents.filter(({ name, cat }) => name === "frame" && cat === "blink.user_timing").sort((a, b) => a.ts - b.ts);
  const { added, blocks } = await page.evaluate(() => ({ added: window.added, blocks: document.querySelector(".markdown").children.length }));
  // What is finished is not made again: at a frame the last two blocks are, beside what is new.
  assert.ok(added <= 4 * frames.length + 3 * blocks + 50, `${added} elements were put in for ${blocks} blocks in ${frames.length} frames`);
  assert.equal(await page.$eval(".markdown", (shown) => shown.textContent.includes("999") || shown.children.length > 100), true);
  assert.deepEqual(page.faults, []);
  await page.browserContext().close();
  const most = (clock) => {
    const gaps = frames.slice(1).map((frame, i) => (frame[clock] - frames[i][clock]) / 1000);
    return gaps.sort((a, b) => a - b)[Math.floor(0.95 * (gaps.length - 1))];
  };
  return { shown: most("ts"), own: most("tts"), busy };
}

const kMostGapMs = 50;

for (const [kind, part] of Object.entries(kParts)) {
  test(`an answer of 10,000 tokens ${kind} is shown as it comes, and 95% of the frames within ${kMostGapMs} ms`, async (t) => {
    let text = "";
    for (let i = 0; text.length < 40_000; ++i) text += part(i);
    const url = await stream_in_front(suite, script.url, text, 1000);
    let is_quick = false;  // or not to be seen: gaps are the machine's where others have its processors
    for (let round = 0; round < 3 && !is_quick; ++round) {
      const { shown, own, busy } = await watch(url);
      t.diagnostic(`95% of the gaps are within ${shown.toFixed(0)} ms, the page's own work within ${own.toFixed(0)} ms; others had ${(100 * busy).toFixed(0)}% of the processors`);
      assert.ok(own <= kMostGapMs);
      is_quick = shown <= kMostGapMs || busy >= 0.1;
    }
    assert.ok(is_quick);
  });
}
