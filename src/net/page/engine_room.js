// What the server does just now, read once a second while somebody looks.
import { get_json } from "./api.js";
import { Chart } from "./chart.js";
import { by_id, element } from "./dom.js";
import { percentile, pool, rates, value } from "./figures.js";
import { LogLines } from "./log_lines.js";
import { Models } from "./models.js";
import { PoolPicture } from "./pool.js";

const kPeriodMs = 1000;
const kWindow = 30;  // readings that percentiles and hits are of

const whole = (number) => Math.round(number).toLocaleString("en");
const share = (number) => `${(100 * number).toFixed(0)}%`;
const ms = (number) => (number === Infinity ? "more" : `≤ ${number} ms`);

// A list of names and values; set() changes one.
class Figures {
  #values = {};
  root = element("dl", { class: "figures" });
  constructor(names) {
    for (const [key, name] of Object.entries(names))
      this.root.append(element("div", {}, element("dt", {}, name), this.#values[key] = element("dd", {}, "–")));
  }
  set(values) { for (const [key, text] of Object.entries(values)) this.#values[key].textContent = text; }
}

function sequence_row(slot) {
  const cells = [slot.request, slot.phase, slot.prompt_tokens, slot.cached_tokens, `${slot.generated_tokens} of ${slot.max_tokens}`];
  return element("tr", {}, ...cells.map((cell) => element("td", {}, String(cell))));
}

export class EngineRoom {
  #readings = [];  // {at, metrics}, the last kWindow of them
  #round = 0;  // of reading; a newer one replaces it
  #fault = element("p", { class: "error", role: "alert" });
  #queue = new Figures({ waiting: "Waiting", prefilling: "Reading prompts", decoding: "Writing", stalled: "Held up by readers", preempted: "Set back" });
  #times = new Figures({ decode: "Strand busy with decode", prefill: "Strand busy with prefill", steps: "Steps a second", p50: "Between tokens, p50",
    p95: "Between tokens, p95", p99: "Between tokens, p99" });
  #cache = new Figures({ hits: "Prompt tokens found in the cache", evictions: "Evictions", disk: "Tokens read from disk" });
  #generated = new Chart("Tokens written a second", whole);
  #prompt = new Chart("Prompt tokens a second", whole);
  #pool = new PoolPicture();
  #rows = element("tbody");
  #models = new Models();
  #log = new LogLines();

  constructor() {
    const heads = ["Request", "Phase", "Prompt", "Cached", "Written"].map((name) => element("th", { scope: "col" }, name));
    const part = (title, ...children) => element("section", {}, element("h2", {}, title), ...children);
    by_id("engine-view").append(this.#fault,
      part("Queue", this.#queue.root),
      part("Rates", this.#generated.root, this.#prompt.root),
      part("Time", this.#times.root),
      part("KV pool", this.#pool.root),
      part("Prefix cache", this.#cache.root),
      part("Your sequences", element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Your sequences" },
        element("table", { class: "sequences" }, element("thead", {}, element("tr", {}, ...heads)), this.#rows))),
      part("Models", this.#models.root),
      part("Log", this.#log.root));
    document.addEventListener("visibilitychange", () => this.#look());
  }

  open() {
    by_id("engine-view").hidden = false;
    this.#log.opened();
    this.#look();
  }

  close() {
    by_id("engine-view").hidden = true;
    ++this.#round;
  }

  #look() {
    const round = ++this.#round;
    if (!by_id("engine-view").hidden && document.visibilityState === "visible") this.#read(round);
  }

  async #read(round) {
    try {
      const [{ metrics }, slots, { data }] = await Promise.all([get_json("v1/metrics"), get_json("slots"), get_json("v1/models")]);
      this.#fault.textContent = "";
      this.#show(metrics, slots.filter((slot) => slot.request), data);
      await this.#log.read();
    } catch (error) {
      this.#fault.textContent = `The server does not tell: ${error.message}`;
    }
    setTimeout(() => { if (round === this.#round) this.#read(round); }, kPeriodMs);
  }

  #show(metrics, sequences, models) {
    const at = performance.now();
    const last = this.#readings.at(-1) ?? { at: at - kPeriodMs, metrics };
    this.#readings.push({ at, metrics });
    if (this.#readings.length > kWindow) this.#readings.shift();
    const now = rates(last.metrics, metrics, (at - last.at) / 1000);
    const lately = rates(this.#readings[0].metrics, metrics, Math.max(1, at - this.#readings[0].at) / 1000);
    const between = (part) => {
      const bound = percentile(this.#readings[0].metrics, metrics, "inter_token_latency_ms", part);
      return bound === null ? "–" : ms(bound);
    };
    const gauge = (name) => whole(value(metrics, `sequences_${name}`));
    this.#queue.set({ waiting: gauge("waiting"), prefilling: gauge("prefilling"), decoding: gauge("decoding"), stalled: gauge("stalled"),
      preempted: gauge("preempted") });
    this.#generated.add(now.generated);
    this.#prompt.add(now.prompt);
    this.#times.set({ decode: share(now.decode_share), prefill: share(now.prefill_share), steps: whole(now.steps), p50: between(0.5),
      p95: between(0.95), p99: between(0.99) });
    this.#pool.show(pool(metrics));
    this.#cache.set({ hits: lately.hit_share === null ? "–" : share(lately.hit_share), evictions: whole(value(metrics, "prefix_cache_evictions_total")),
      disk: whole(value(metrics, "prefix_cache_disk_hit_tokens_total")) });
    this.#rows.replaceChildren(...sequences.map(sequence_row));
    this.#models.show(models);
  }
}
