// The usual part of TeX's formulas as MathML. What it does not know stays as its source, so that nothing is lost.
import { element } from "./dom.js";

const kMathMl = "http://www.w3.org/1998/Math/MathML";
const kDeepest = 30;

const kNames = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ϵ", varepsilon: "ε", zeta: "ζ", eta: "η", theta: "θ", iota: "ι", kappa: "κ",
  lambda: "λ", mu: "μ", nu: "ν", xi: "ξ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "ϕ", varphi: "φ", chi: "χ", psi: "ψ", omega: "ω",
  Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Xi: "Ξ", Pi: "Π", Sigma: "Σ", Phi: "Φ", Psi: "Ψ", Omega: "Ω", infty: "∞",
  partial: "∂", nabla: "∇", emptyset: "∅", ell: "ℓ", hbar: "ℏ", forall: "∀", exists: "∃", ldots: "…", cdots: "⋯", dots: "…",
};
const kOperators = {
  cdot: "⋅", times: "×", div: "÷", pm: "±", mp: "∓", le: "≤", leq: "≤", ge: "≥", geq: "≥", ne: "≠", neq: "≠", approx: "≈", equiv: "≡",
  sim: "∼", propto: "∝", in: "∈", notin: "∉", subset: "⊂", subseteq: "⊆", cup: "∪", cap: "∩", to: "→", rightarrow: "→", leftarrow: "←",
  Rightarrow: "⇒", implies: "⟹", iff: "⟺", mapsto: "↦", sum: "∑", prod: "∏", int: "∫", oint: "∮", land: "∧", lor: "∨", neg: "¬",
  langle: "⟨", rangle: "⟩", lfloor: "⌊", rfloor: "⌋", lceil: "⌈", rceil: "⌉", mid: "∣", parallel: "∥", perp: "⊥", "{": "{", "}": "}",
  "|": "‖", circ: "∘", oplus: "⊕", otimes: "⊗",
};
const kFunctions = new Set(["sin", "cos", "tan", "log", "ln", "exp", "min", "max", "lim", "det", "gcd", "arg", "sup", "inf"]);
const kSpaces = { ",": "0.17em", ":": "0.22em", ";": "0.28em", " ": "0.3em", quad: "1em", qquad: "2em" };
const kText = /^[a-z]+\s*\{(.*)\}$/s;  // words within a formula, in one token
const kAccents = { hat: "^", bar: "¯", vec: "→", tilde: "~", dot: "˙", overline: "¯" };

class Unknown extends Error {}

function made(name, children = [], attributes = {}) {
  const node = document.createElementNS(kMathMl, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

class Reader {
  #tokens; #at = 0; #depth = 0;

  constructor(source) { this.#tokens = source.match(/\\(?:text\w*|math\w+|operatorname)\s*\{[^{}]*\}|\\[a-zA-Z]+|\\.|[{}^_&]|\d+(?:\.\d+)?|[^\s\\]/gsu) ?? []; }

  whole() {
    const row = this.#row(() => false);
    if (this.#at < this.#tokens.length) throw new Unknown();
    return row;
  }

  #row(ends) {
    if (++this.#depth > kDeepest) throw new Unknown();
    const found = [];
    while (this.#at < this.#tokens.length && !ends(this.#tokens[this.#at])) found.push(this.#scripted());
    --this.#depth;
    return made("mrow", found);
  }

  // An atom with what stands below and above it.
  #scripted() {
    const base = this.#atom();
    let below = null, above = null;
    for (;;) {
      const mark = this.#tokens[this.#at];
      if (mark === "_" && !below) { ++this.#at; below = this.#atom(); }
      else if (mark === "^" && !above) { ++this.#at; above = this.#atom(); }
      else if (mark === "'" && !above) { ++this.#at; above = made("mo", ["′"]); }
      else break;
    }
    if (below && above) return made("msubsup", [base, below, above]);
    return below ? made("msub", [base, below]) : above ? made("msup", [base, above]) : base;
  }

  #atom() {
    const token = this.#tokens[this.#at++];
    if (token === undefined || token === "}" || token === "&" || token === "^" || token === "_") throw new Unknown();
    if (token === "{") return this.#group();
    if (token[0] === "\\") return this.#command(token.slice(1));
    if (/^\d/.test(token)) return made("mn", [token]);
    return /\p{L}/u.test(token) ? made("mi", [token]) : made("mo", [token === "-" ? "−" : token]);
  }

  #group() {
    const row = this.#row((token) => token === "}");
    if (this.#tokens[this.#at++] !== "}") throw new Unknown();
    return row;
  }

  #command(name) {
    if (name in kNames) return made("mi", [kNames[name]]);
    if (name in kOperators) return made("mo", [kOperators[name]]);
    if (name in kSpaces) return made("mspace", [], { width: kSpaces[name] });
    if (kFunctions.has(name)) return made("mi", [name]);
    if (name === "frac" || name === "dfrac" || name === "tfrac") return made("mfrac", [this.#atom(), this.#atom()]);
    if (name === "binom") return made("mrow", [made("mo", ["("]), made("mfrac", [this.#atom(), this.#atom()], { linethickness: "0" }), made("mo", [")"])]);
    if (name === "sqrt") return this.#root();
    if (name in kAccents) return made("mover", [this.#atom(), made("mo", [kAccents[name]])], { accent: "true" });
    if (kText.test(name)) return made("mtext", [name.match(kText)[1]]);
    if (name === "left" || name === "right") return this.#fence();
    throw new Unknown();
  }

  #root() {
    if (this.#tokens[this.#at] !== "[") return made("msqrt", [this.#atom()]);
    ++this.#at;
    const degree = this.#row((token) => token === "]");
    if (this.#tokens[this.#at++] !== "]") throw new Unknown();
    return made("mroot", [this.#atom(), degree]);
  }

  #fence() {
    if (this.#tokens[this.#at] !== ".") return this.#atom();
    ++this.#at;
    return made("mrow");
  }
}

// The source is what a screen reader or a copy gets.
export function maths_element(source, is_block) {
  try {
    const attributes = { alttext: source.trim() };
    if (is_block) attributes.display = "block";
    return made("math", [new Reader(source).whole()], attributes);
  } catch (error) {
    if (!(error instanceof Unknown)) throw error;
    return element(is_block ? "pre" : "code", { class: "maths" }, source.trim());
  }
}
