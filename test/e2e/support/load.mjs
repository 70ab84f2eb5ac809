// Work that goes on while something else happens to the server.
import { eventually } from "./client.mjs";

// Workers that do `work(i)` again and again until stopped; what one of them throws is told by stop().
export class Load {
  #stopped = false;
  #workers;
  answers = 0;

  constructor(workers, work) {
    const repeat = async (i) => {
      while (!this.#stopped) {
        await work(i);
        ++this.answers;
      }
    };
    this.#workers = Array.from({ length: workers }, (_, i) => repeat(i));
    for (const worker of this.#workers) worker.catch(() => {});
  }

  async another(count) {
    const until = this.answers + count;
    await Promise.race([eventually("more answers", () => this.answers >= until, 60), Promise.all(this.#workers)]);
  }

  async stop() {
    this.#stopped = true;
    await Promise.all(this.#workers);
  }
}
