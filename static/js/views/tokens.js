/**
 * The prompt as it was run: one chip for each token, with its index and how surprising it was.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../api/types.js").Token} Token
 */
import { createChoices } from "../core/choices.js";
import { el, replace, tokenText } from "../core/dom.js";
import { counted, number, valueOf } from "../core/format.js";
import { arrowStep } from "../core/keys.js";
import { createPanel } from "../core/panel.js";
import { touches } from "../core/store.js";

// A bar as wide as its chip; more surprising than this is drawn no wider.
const FULL_BAR_BITS = 16;

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createTokens(root, store) {
  const { tokens, surprisal } = store.analysis;
  const panel = createPanel(root, {
    name: "tokens",
    title: "Tokens as run",
    about:
      "White space is made visible. The bar under a token is its surprisal: bits the model needed for it, given what precedes. " +
      "Click sets the query (the reader), Shift and click the key (the source); arrow keys move the query, with Shift the key.",
  });
  /** @type {"query" | "key"} */
  let picks = "query";
  const choices = createChoices({
    label: "A click sets",
    visible: true,
    options: [
      { value: "query", text: "Q query" },
      { value: "key", text: "K key" },
    ],
    onChoose(value) {
      picks = value;
      choices.show(value);
    },
  });
  choices.show(picks);
  panel.tools.append(choices.element);
  panel.chosen(counted(tokens.length, "token"));

  const characters = [...store.analysis.text];
  const chips = tokens.map((token) => chip(token, surprisal[token.index] ?? null));
  const strip = el("div", { class: "strip", role: "group", "aria-label": "Tokens" }, ...chips);
  const facts = el("p", { class: "token-facts", "aria-live": "polite" });
  panel.body.append(strip, facts);

  /** @param {Event} event */
  const indexOf = (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-index]") : null;
    return target instanceof HTMLElement ? Number(target.dataset.index) : null;
  };
  /** @param {number} index */
  const tell = (index) => replace(facts, ...describe(tokens[index], surprisal[index] ?? null, characters));

  strip.addEventListener("click", (event) => {
    const index = indexOf(event);
    if (index !== null) store.set(picks === "key" || event.shiftKey ? { key: index } : { query: index });
  });
  strip.addEventListener("keydown", (event) => {
    const step = arrowStep(event);
    if (!step || step.right === 0) return;
    event.preventDefault();
    const { query, key } = store.view();
    store.set(event.shiftKey ? { key: key + step.right } : { query: query + step.right }, { quick: true });
    if (!event.shiftKey) chips[store.view().query].focus();
  });
  strip.addEventListener("pointerover", (event) => {
    const index = indexOf(event);
    if (index !== null) tell(index);
  });
  strip.addEventListener("pointerleave", () => tell(store.view().query));

  const end = store.subscribe((change) => {
    if (!touches(change, "query", "key")) return;
    const { view, before } = change;
    for (const index of [before?.query, before?.key]) {
      if (index !== undefined) mark(chips[index], tokens[index], false, false);
    }
    for (const index of [view.query, view.key]) mark(chips[index], tokens[index], index === view.query, index === view.key);
    for (const chosen of chips) if (chosen.tabIndex === 0) chosen.tabIndex = -1;
    chips[view.query].tabIndex = 0;
    tell(view.query);
    scrollInto(strip, chips[before && before.query === view.query ? view.key : view.query]);
  });

  return {
    destroy() {
      end();
      panel.section.remove();
    },
  };
}

/**
 * @param {Token} token
 * @param {import("../api/types.js").Figure | null} bits
 */
function chip(token, bits) {
  const bar = el("span", { class: "chip-bar" });
  bar.style.width = `${Math.min(1, valueOf(bits ?? 0) / FULL_BAR_BITS) * 100}%`;
  const classes = ["chip", token.added && "added", token.continues && "continues"].filter(Boolean).join(" ");
  const button = el(
    "button",
    { class: classes, type: "button", tabIndex: -1, "data-index": token.index },
    tokenText(token.label),
    el("span", { class: "chip-index", "aria-hidden": "true" }, String(token.index)),
    bar,
  );
  mark(button, token, false, false);
  return button;
}

/**
 * @param {HTMLElement} button
 * @param {Token} token
 * @param {boolean} isQuery
 * @param {boolean} isKey
 */
function mark(button, token, isQuery, isKey) {
  button.classList.toggle("is-query", isQuery);
  button.classList.toggle("is-key", isKey);
  const roles = [isQuery && "query", isKey && "key"].filter(Boolean).join(" and ");
  button.setAttribute("aria-label", `Token ${token.index} ${token.label}${roles ? `, ${roles}` : ""}`);
}

/**
 * @param {Token} token
 * @param {import("../api/types.js").Figure | null} bits
 * @param {string[]} characters of the prompt
 * @returns {(Node | string)[]}
 */
function describe(token, bits, characters) {
  const bytes = token.bytes.replace(/../g, (pair) => `${pair} `).trim();
  const covered = characters.slice(token.start, token.end).join("");
  // Bytes are shown in hexadecimal where a token holds only a part of a character.
  const split = token.continues || /⟨[0-9A-F]{2}( [0-9A-F]{2})*⟩/.test(token.label);
  const parts = [
    `token ${token.index}`,
    `id ${token.id}`,
    bytes ? `bytes ${bytes}` : "no bytes",
    bits === null ? "no surprisal: nothing precedes it" : `surprisal ${number(bits)} bits`,
    token.added && "added by the tokenizer, not typed",
    token.is_special && "special token",
    split && covered && `of ${covered}, which is split over tokens`,
  ];
  return [tokenText(token.label, "in-query"), ` · ${parts.filter(Boolean).join(" · ")}`];
}

/**
 * Scrolls the strip, and nothing else, so that the chip can be seen.
 * @param {HTMLElement} strip
 * @param {HTMLElement} target
 */
function scrollInto(strip, target) {
  const [outer, inner] = [strip.getBoundingClientRect(), target.getBoundingClientRect()];
  if (inner.top < outer.top) strip.scrollTop -= outer.top - inner.top;
  else if (inner.bottom > outer.bottom) strip.scrollTop += inner.bottom - outer.bottom;
}
