// Markdown as a tree of plain objects, a block each; what stands within a line is inline.js's. HTML in it is text like any other.

const kDeepest = 12;

const kFence = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const kHeading = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const kRule = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|$)/;
const kTableRule = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const kMaths = /^\s*(\$\$|\\\[)/;

const is_blank = (line) => line.trim() === "";
const starts_block = (line) => kFence.test(line) || kHeading.test(line) || kRule.test(line) || kQuote.test(line) || kItem.test(line);
const is_table = (lines, i) => lines[i].includes("|") && i + 1 < lines.length && lines[i + 1].includes("-") && kTableRule.test(lines[i + 1]) &&
  (lines[i + 1].includes("|") || lines[i + 1].includes(":"));
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

function fenced(lines, i) {
  const [, mark, info] = lines[i].match(kFence);
  const indent = lines[i].match(/^ */)[0].length;
  const text = [];
  for (++i; i < lines.length; ++i) {
    const close = lines[i].match(/^ {0,3}(`{3,}|~{3,})\s*$/);
    if (close && close[1][0] === mark[0] && close[1].length >= mark.length) { ++i; break; }
    text.push(lines[i].slice(Math.min(indent, lines[i].match(/^ */)[0].length)));
  }
  return [{ type: "code", language: info.trim().split(/\s/)[0], text: text.join("\n") }, i];
}

// $$ or \[ to its end, which comes before a blank line; otherwise null.
function maths(lines, i) {
  const mark = lines[i].match(kMaths)[1];
  const end = mark === "$$" ? "$$" : "\\]";
  let text = lines[i].trim().slice(2);
  for (;;) {
    const at = text.indexOf(end);
    if (at >= 0) return text.slice(at + 2).trim() === "" ? [{ type: "maths", text: text.slice(0, at) }, i + 1] : null;
    if (++i >= lines.length || is_blank(lines[i])) return null;
    text += `\n${lines[i]}`;
  }
}

function quote(lines, i, depth) {
  const inner = [];
  for (; i < lines.length && !is_blank(lines[i]) && (kQuote.test(lines[i]) || !starts_block(lines[i])); ++i)
    inner.push(lines[i].replace(kQuote, ""));
  return [{ type: "quote", children: parse(inner, depth + 1) }, i];
}

// One item's lines without its marker; what follows it is taken as long as it is indented, or goes a paragraph on.
function item(lines, i) {
  const [whole, , mark] = lines[i].match(kItem);
  const width = whole.length < 2 + mark.length - 1 ? mark.length + 1 : whole.length;
  const inner = [lines[i].slice(whole.length)];
  for (++i; i < lines.length; ++i) {
    const indent = lines[i].match(/^ */)[0].length;
    if (is_blank(lines[i])) {
      const next = lines.slice(i + 1, i + 3).find((line) => !is_blank(line));
      if (next === undefined || next.match(/^ */)[0].length < Math.min(width, 2)) break;
      inner.push("");
    } else if (indent >= Math.min(width, 2)) {
      inner.push(lines[i].slice(Math.min(indent, width)));
    } else if (!is_blank(lines[i - 1]) && !starts_block(lines[i])) {
      inner.push(lines[i]);
    } else {
      break;
    }
  }
  return [inner, i];
}

function list(lines, i, depth) {
  const kind = (line) => line.match(kItem)?.[2].slice(-1);
  const mark = lines[i].match(kItem)[2];
  const items = [];
  while (i < lines.length && kind(lines[i]) === mark.slice(-1) && !kRule.test(lines[i])) {
    const [inner, end] = item(lines, i);
    const task = inner[0].match(/^\[([ xX])\] /);
    if (task) inner[0] = inner[0].slice(4);
    items.push({ done: task ? task[1] !== " " : null, children: parse(inner, depth + 1) });
    i = end;
    let next = i;
    while (next < lines.length && is_blank(lines[next])) ++next;
    if (next < lines.length && kind(lines[next]) === mark.slice(-1)) i = next;
  }
  const ordered = /\d/.test(mark);
  return [{ type: "list", ordered, first: ordered ? Number.parseInt(mark, 10) : 1, items }, i];
}

function table(lines, i) {
  const header = cells(lines[i]);
  const align = cells(lines[i + 1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left"));
  const rows = [];
  for (i += 2; i < lines.length && !is_blank(lines[i]) && !starts_block(lines[i]); ++i) rows.push(cells(lines[i]).slice(0, header.length));
  return [{ type: "table", header, align, rows }, i];
}

function indented(lines, i) {
  const text = [];
  for (; i < lines.length && (/^ {4}/.test(lines[i]) || is_blank(lines[i])); ++i) text.push(lines[i].slice(4));
  return [{ type: "code", language: "", text: text.join("\n").trimEnd() }, i];
}

function paragraph(lines, i) {
  const text = [lines[i]];
  for (++i; i < lines.length && !is_blank(lines[i]) && !is_table(lines, i); ++i) {
    if (/^ {0,3}(=+|-+)\s*$/.test(lines[i])) return [{ type: "heading", level: lines[i].includes("=") ? 1 : 2, text: text.join("\n").trim() }, i + 1];
    const marker = lines[i].match(kItem);  // a number within a paragraph begins a list only when it is 1
    if (starts_block(lines[i]) && !(marker && /\d/.test(marker[2]) && Number.parseInt(marker[2], 10) !== 1)) break;
    text.push(lines[i].trimStart());
  }
  return [{ type: "paragraph", text: text.join("\n").trimEnd().trimStart() }, i];
}

// The block that begins at line i, and the line behind it.
function block(lines, i, depth) {
  const line = lines[i];
  if (kFence.test(line)) return fenced(lines, i);
  if (kMaths.test(line)) {
    const found = maths(lines, i);
    if (found) return found;
  }
  const heading = line.match(kHeading);
  if (heading) return [{ type: "heading", level: heading[1].length, text: heading[2] ?? "" }, i + 1];
  if (kRule.test(line)) return [{ type: "rule" }, i + 1];
  if (depth < kDeepest && kQuote.test(line)) return quote(lines, i, depth);
  if (depth < kDeepest && kItem.test(line)) return list(lines, i, depth);
  if (is_table(lines, i)) return table(lines, i);
  if (/^ {4}/.test(line)) return indented(lines, i);
  return paragraph(lines, i);
}

function parse(lines, depth) {
  const found = [];
  for (let i = 0; i < lines.length;) {
    if (is_blank(lines[i])) { ++i; continue; }
    const [made, end] = block(lines, i, depth);
    found.push(made);
    i = end;
  }
  return found;
}

// The blocks from offset `start` on, at which one begins, each with its `start` and `end` in the text.
export function blocks(text, start = 0) {
  const lines = text.slice(start).replaceAll("\r", "").replaceAll("\t", "    ").split("\n");
  const lengths = text.slice(start).split("\n").map((line) => line.length + 1);
  const found = [];
  let offset = start;
  for (let i = 0; i < lines.length;) {
    if (is_blank(lines[i])) { offset += lengths[i++]; continue; }
    const [made, end] = block(lines, i, 0);
    const begin = offset;
    while (i < end) offset += lengths[i++];
    found.push({ ...made, start: begin, end: Math.min(offset, text.length) });
  }
  return found;
}

// The blocks of a text, given those of its beginning. Its last line may have been half there: it can change the block that it was in, and
// the one before.
export const grown = (found, text) => [...found.slice(0, -2), ...blocks(text, found.at(-2)?.start ?? 0)];
