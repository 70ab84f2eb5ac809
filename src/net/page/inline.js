// Markdown within a line, as a tree of plain objects: strings, and {type, children | text, href}. Takes time in proportion to the text,
// whatever it is.

const kDeepest = 6;
const kMostOpeners = 64;
const kLongestLink = 2000;
const kPunctuation = /[!-/:-@[-`{-~]/;
const kUrl = /https?:\/\/[^\s<>"'`]+/y;
const kSchemes = /^(https?:\/\/|mailto:)/i;

// A link that may be followed; everything else (javascript:, data:, relative ones) stays text.
export const safe_href = (href) => (kSchemes.test(href) ? href : null);

// For each "[" the place of its "]".
function bracket_pairs(text) {
  const pairs = new Map();
  const open = [];
  for (let i = 0; i < text.length; ++i) {
    if (text[i] === "\\") ++i;
    else if (text[i] === "[") open.push(i);
    else if (text[i] === "]" && open.length > 0) pairs.set(open.pop(), i);
  }
  return pairs;
}

// Places of runs of "`", by their length, each list in order.
function backtick_runs(text) {
  const runs = new Map();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    if (!runs.has(run.length)) runs.set(run.length, []);
    runs.get(run.length).push(index);
  }
  return runs;
}

class Scanner {
  #text; #depth; #pairs; #runs;
  #at = 0;
  #out = [];      // finished pieces
  #plain = "";    // text that is not in #out yet
  #openers = [];  // {mark, place in #out}
  #may_hold_maths = true;  // false once no "\\)" is left

  constructor(text, depth) {
    this.#text = text;
    this.#depth = depth;
    this.#pairs = bracket_pairs(text);
    this.#runs = backtick_runs(text);
  }

  run() {
    while (this.#at < this.#text.length) {
      if (!this.#special()) this.#plain += this.#text[this.#at++];
    }
    this.#flush();
    return this.#out;
  }

  #flush() {
    if (this.#plain) this.#out.push(this.#plain);
    this.#plain = "";
  }

  #put(piece, end) {
    this.#flush();
    this.#out.push(piece);
    this.#at = end;
    return true;
  }

  // Takes what begins here; false when it is a character like any other.
  #special() {
    switch (this.#text[this.#at]) {
      case "\\": return this.#escape();
      case "`": return this.#code();
      case "$": return this.#dollars();
      case "!": return this.#text[this.#at + 1] === "[" && this.#link(this.#at + 1);
      case "[": return this.#link(this.#at);
      case "<": return this.#autolink();
      case "h": return this.#url();
      case "*": case "_": case "~": return this.#emphasis();
      case " ": return this.#text.startsWith("  \n", this.#at) && this.#put({ type: "break" }, this.#at + 3);
      default: return false;
    }
  }

  #escape() {
    const next = this.#text[this.#at + 1];
    if (next === "\n") return this.#put({ type: "break" }, this.#at + 2);
    if (next === "(" && this.#may_hold_maths) {
      const end = this.#text.indexOf("\\)", this.#at + 2);
      this.#may_hold_maths = end > 0;
      if (end > 0) return this.#put({ type: "maths", text: this.#text.slice(this.#at + 2, end) }, end + 2);
    }
    if (next === undefined || !kPunctuation.test(next)) return false;
    this.#plain += next;
    this.#at += 2;
    return true;
  }

  #code() {
    const length = this.#text.slice(this.#at).match(/^`+/)[0].length;
    const begin = this.#at + length;
    const runs = this.#runs.get(length);
    while (runs.length > 0 && runs[0] < begin) runs.shift();
    if (runs.length === 0) {
      this.#plain += "`".repeat(length);
      this.#at = begin;
      return true;
    }
    const text = this.#text.slice(begin, runs[0]).replaceAll("\n", " ");
    return this.#put({ type: "code", text: /^ .*[^ ].* $/.test(text) ? text.slice(1, -1) : text }, runs[0] + length);
  }

  // $x$, where no money is meant.
  #dollars() {
    const text = this.#text;
    const mark = text[this.#at + 1] === "$" ? "$$" : "$";
    const begin = this.#at + mark.length;
    const end = text.indexOf(mark, begin);
    if (end <= begin || /\s/.test(text[begin]) || /\s/.test(text[end - 1]) || /\d/.test(text[end + mark.length] ?? "")) return false;
    return this.#put({ type: "maths", text: text.slice(begin, end) }, end + mark.length);
  }

  #link(open) {
    const close = this.#pairs.get(open);
    if (close === undefined || this.#text[close + 1] !== "(" || this.#depth >= kDeepest) return false;
    const end = this.#text.slice(close + 2, close + 2 + kLongestLink).search(/\)|\n/);
    if (end < 0 || this.#text[close + 2 + end] !== ")") return false;
    const href = safe_href(this.#text.slice(close + 2, close + 2 + end).trim().split(/\s/)[0].replace(/^<|>$/g, ""));
    if (href === null) return false;
    const children = inline(this.#text.slice(open + 1, close), this.#depth + 1);
    return this.#put({ type: "link", href, children }, close + 3 + end);
  }

  #autolink() {
    const end = this.#text.slice(this.#at, this.#at + kLongestLink).search(/[>\s]/);
    const href = end > 0 && this.#text[this.#at + end] === ">" ? safe_href(this.#text.slice(this.#at + 1, this.#at + end)) : null;
    return href !== null && this.#put({ type: "link", href, children: [href] }, this.#at + end + 1);
  }

  #url() {
    kUrl.lastIndex = this.#at;
    const found = kUrl.exec(this.#text)?.[0].replace(/[.,;:!?)\]}*_]+$/, "");
    return Boolean(found) && this.#put({ type: "link", href: found, children: [found] }, this.#at + found.length);
  }

  #emphasis() {
    const text = this.#text;
    const character = text[this.#at];
    let length = 1;
    while (text[this.#at + length] === character) ++length;
    if (length > 3 || (character === "~" && length !== 2)) {
      this.#plain += text.slice(this.#at, this.#at + length);
      this.#at += length;
      return true;
    }
    const before = text[this.#at - 1] ?? " ";
    const after = text[this.#at + length] ?? " ";
    const within_word = character === "_" && /\w/.test(before) && /\w/.test(after);
    const mark = text.substr(this.#at, length);
    if (!within_word && !/\s/.test(before) && this.#close(mark)) return true;
    this.#at += length;
    if (within_word || /\s/.test(after)) {
      this.#plain += mark;
      return true;
    }
    this.#flush();
    this.#openers.push({ mark, place: this.#out.length });
    if (this.#openers.length > kMostOpeners) this.#openers.shift();
    this.#out.push(mark);
    return true;
  }

  // Joins what stands behind the opener of the same mark.
  #close(mark) {
    const index = this.#openers.findLastIndex((opener) => opener.mark === mark);
    if (index < 0) return false;
    this.#flush();
    const { place } = this.#openers[index];
    this.#openers.length = index;
    let children = this.#out.splice(place).slice(1);
    if (mark === "***" || mark === "___") children = [{ type: "em", children }];
    const type = mark === "~~" ? "del" : mark.length === 1 ? "em" : "strong";
    this.#out.push({ type, children });
    this.#at += mark.length;
    return true;
  }
}

export const inline = (text, depth = 0) => new Scanner(text, depth).run();
