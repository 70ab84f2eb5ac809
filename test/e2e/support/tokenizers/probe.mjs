// The project's tokenizer in a process of its own (test/text/probe).
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export class Probe {
  constructor() {
    this.process = spawn(process.env.BRAID_TOKENIZER_PROBE, { stdio: ["pipe", "pipe", "inherit"] });
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  async #line() {
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`the probe ended with ${this.process.exitCode ?? this.process.signalCode}`);
    return value;
  }

  // "ok", or why the tokenizer cannot be used.
  load(json) {
    this.process.stdin.write(`${JSON.stringify(json)}\n`);
    return this.#line();
  }

  async encode(texts) {
    this.process.stdin.write(`${JSON.stringify(texts)}\n`);
    const answers = [];
    while (answers.length < texts.length) {
      const [ids, text] = (await this.#line()).split("\t");
      answers.push({ ids: ids === "" ? [] : ids.split(" ").map(Number), text: JSON.parse(text) });
    }
    return answers;
  }

  end() {
    this.process.stdin.end();
  }
}
