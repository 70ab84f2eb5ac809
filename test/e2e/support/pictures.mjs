// Pictures of coloured shapes, drawn point by point, and what is true of them. Nothing here was used when the demo model's eyes were trained:
// other code draws, at other sizes.
import { deflateSync } from "node:zlib";

export const shapes = ["circle", "square", "triangle", "star", "cross"];
export const colours = {
  red: [220, 30, 30], green: [30, 160, 50], blue: [30, 60, 220], yellow: [245, 220, 40], orange: [245, 135, 20], purple: [140, 40, 170],
  pink: [250, 150, 195], black: [15, 15, 15], white: [245, 245, 245],
};
export const places = ["at the top left", "at the top", "at the top right", "on the left", "in the middle", "on the right",
  "at the bottom left", "at the bottom", "at the bottom right"];

// Numbers from 0 to 1 that follow from a seed (Mulberry32).
export function numbers_of(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// Whether a point lies in a shape of radius 1 around the origin, y downwards.
const corners = (count, inner) => Array.from({ length: inner ? 2 * count : count }, (_, i) => {
  const angle = Math.PI * 2 * i / (inner ? 2 * count : count);
  const radius = inner && i % 2 ? inner : 1;
  return [radius * Math.sin(angle), -radius * Math.cos(angle)];
});
const within = (polygon) => (x, y) => {
  let inside = false;
  polygon.forEach(([x1, y1], i) => {
    const [x2, y2] = polygon[(i + 1) % polygon.length];
    if (y1 > y !== y2 > y && x < x1 + (x2 - x1) * (y - y1) / (y2 - y1)) inside = !inside;
  });
  return inside;
};
const inside = {
  circle: (x, y) => x * x + y * y < 0.72,
  square: (x, y) => Math.max(Math.abs(x), Math.abs(y)) < 0.8,
  triangle: within(corners(3)),
  star: within(corners(5, 0.45)),
  cross: (x, y) => Math.max(Math.abs(x), Math.abs(y)) < 0.9 && Math.min(Math.abs(x), Math.abs(y)) < 0.3,
};

const crcs = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; ++k) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});
function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name), data]);
  const out = Buffer.alloc(8 + body.length);
  out.writeUInt32BE(data.length);
  body.copy(out, 4);
  out.writeUInt32BE((body.reduce((crc, byte) => crcs[(crc ^ byte) & 255] ^ (crc >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0, 4 + body.length);
  return out;
}

// A PNG file. things: [{ shape, colour, cell }], of which cell is one of nine places, row by row.
export function draw({ things, ground = "white", side = 168 }) {
  const fine = 3;  // points of a pixel's side
  const rows = Buffer.alloc(side * (side * 3 + 1));
  for (let row = 0; row < side; ++row)
    for (let column = 0; column < side; ++column) {
      const sums = [0, 0, 0];
      for (let point = 0; point < fine * fine; ++point) {
        const x = (column + (point % fine + 0.5) / fine) / side * 3;
        const y = (row + (Math.floor(point / fine) + 0.5) / fine) / side * 3;
        const hit = things.find(({ shape, cell, size = 0.36 }) => inside[shape]((x - cell % 3 - 0.5) / size, (y - Math.floor(cell / 3) - 0.5) / size));
        colours[hit ? hit.colour : ground].forEach((value, i) => { sums[i] += value; });
      }
      sums.forEach((sum, i) => { rows[row * (side * 3 + 1) + 1 + column * 3 + i] = Math.round(sum / fine / fine); });
    }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side);
  header.writeUInt32BE(side, 4);
  header.set([8, 2], 8);
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

// So many things of different shapes and colours.
export function invent(random, count) {
  const pick = (from) => from.splice(Math.floor(random() * from.length), 1)[0];
  const kinds = [...shapes];
  const names = Object.keys(colours).filter((name) => name !== "white");
  const cells = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  return Array.from({ length: count }, () => ({ shape: pick(kinds), colour: pick(names), cell: pick(cells) })).sort((a, b) => a.cell - b.cell);
}
