// An answer as its tokens, each shaded by its probability. Pointing at one, or going to it by the arrow keys, tells what else could have
// stood there.
import { announce, element } from "./dom.js";

const percent = (logprob) => `${(100 * Math.exp(logprob)).toFixed(1)}%`;
const visible = (text) => text.replaceAll("\n", "⏎").replaceAll(" ", "␣") || "∅";

function shade(logprob) {
  const probability = Math.exp(logprob);
  return probability >= 0.9 ? "likely" : probability >= 0.5 ? "fair" : probability >= 0.1 ? "doubtful" : "unlikely";
}

const sentence = ({ token, logprob, others }) =>
  `${visible(token)} ${percent(logprob)}; ${others.map(([text, value]) => `${visible(text)} ${percent(value)}`).join(", ")}`;

function choices({ token, logprob, others }) {
  const row = ([text, value]) => element("tr", {}, element("td", {}, element("code", {}, visible(text))), element("td", {}, percent(value)));
  return element("table", {}, element("caption", {}, `${visible(token)} ${percent(logprob)}`), element("tbody", {}, ...others.map(row)));
}

export function token_view(tokens) {
  const spans = tokens.map((token) => element("span", { class: shade(token.logprob) }, token.token));
  const tip = element("div", { class: "tip", hidden: true });
  let current = -1;
  const show = (index) => {
    if (index === current || index < 0 || index >= spans.length) return;
    spans[current]?.classList.remove("current");
    current = index;
    spans[index].classList.add("current");
    tip.replaceChildren(choices(tokens[index]));
    tip.hidden = false;
  };
  const on_key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    show(Math.min(spans.length - 1, Math.max(0, current + step)));
    announce(sentence(tokens[current]));
  };
  const text = element("div", {
    class: "token-text", tabindex: "0", role: "group", "aria-label": "Tokens with their probabilities; arrow keys go from one to the next",
    pointerover: (event) => show(spans.indexOf(event.target)), keydown: on_key,
  }, ...spans);
  return element("div", { class: "tokens" }, text, tip);
}
