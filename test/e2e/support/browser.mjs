// A headless Chromium for one test file.
import puppeteer from "puppeteer-core";

// Its profile is new, so that nothing is kept; as root it has no sandbox of its own.
export async function browser(t) {
  const sandbox = process.getuid() === 0 ? ["--no-sandbox"] : [];
  const started = await puppeteer.launch({ executablePath: process.env.BRAID_CHROMIUM, args: [...sandbox, "--disable-dev-shm-usage", "--force-color-profile=srgb"] });
  t.after(() => started.close());
  return started;
}

// A window on the page. What its console says of errors, and any request to another host, is in `faults`.
export async function open_page(started, url, { width = 1280, height = 850, media = "light", ready = true, host = url } = {}) {
  const context = await started.createBrowserContext();
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (message) => { if (message.type() === "error") page.faults.push(message.text()); });
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("request", (request) => { if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(host)) page.faults.push(request.url()); });
  page.on("dialog", (dialog) => { page.faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: media }]);
  await page.goto(url);
  if (ready) await page.waitForSelector("html[data-ready=true]");
  return page;
}

export const count = (page, selector) => page.$$eval(selector, (found) => found.length);
export const texts = (page, selector) => page.$$eval(selector, (found) => found.map((each) => each.textContent));

// Writes a message, and waits for the end of its answer unless `waits` is false.
export async function send(page, text, { waits = true } = {}) {
  const answers = await count(page, ".message.assistant");
  await page.focus("#composer-text");
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
  await page.waitForFunction((before) => document.querySelectorAll(".message.assistant").length > before, {}, answers);
  if (waits) await finished(page);
}

export const finished = (page) => page.waitForFunction(() =>
  document.querySelector("#stop").hidden && !document.querySelector("[aria-busy=true]"), { timeout: 120_000 });

export const press = (page, label, within = "body") => page.evaluate((wanted, inside) => {
  const found = [...document.querySelectorAll(`${inside} button`)].filter((each) => (each.getAttribute("aria-label") ?? each.textContent) === wanted);
  found.at(-1).click();
}, label, within);
