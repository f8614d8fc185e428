/**
 * The page with the prompt box.
 * @typedef {import("../api/types.js").Tokenization} Tokenization
 */
import { startAnalysis, tokenize } from "../api/client.js";
import { asFailure } from "../api/errors.js";
import { byId, el, replace, tokenText } from "../core/dom.js";
import { ago, counted, integer } from "../core/format.js";
import { forgetAnalysis, recentAnalyses, rememberAnalysis, takePrompt } from "../core/kept.js";
import { createLatest } from "../core/latest.js";
import { bindThemeButton } from "../core/theme.js";
import { EXAMPLES } from "./examples.js";

const PAUSE_MS = 220;
const PREVIEWED = 300;

const form = byId("prompt-form", HTMLFormElement);
const box = byId("prompt", HTMLTextAreaElement);
const select = byId("model", HTMLSelectElement);
const run = byId("run", HTMLButtonElement);
const count = byId("count", HTMLOutputElement);
const preview = byId("preview", HTMLElement);
const problem = byId("problem", HTMLElement);
const modelNote = byId("model-note", HTMLElement);

/** @type {Tokenization | null} of the text that is in the box now */
let counting = null;
let timer = 0;
const latest = createLatest((error) => {
  counting = null;
  showCount("");
  say(asFailure(error).detail);
});

/** @param {string} text "" for nothing */
function say(text) {
  problem.textContent = text;
  problem.hidden = text === "";
}

/** @param {string} text @param {boolean} [over] */
function showCount(text, over = false) {
  count.textContent = text;
  count.classList.toggle("over", over);
}

/** The longest prompt and the message of the chosen model; null where there is no model at all. */
function chosenModel() {
  const option = select.selectedOptions[0];
  return option ? { limit: Number(option.dataset.limit), message: option.dataset.message ?? "" } : null;
}

function textChanged() {
  counting = null;
  clearTimeout(timer);
  latest.cancel();
  say("");
  const model = chosenModel();
  if (box.value === "" || !model) {
    showCount(model ? `0 of ${counted(model.limit, "token")}` : "");
    preview.hidden = true;
    return;
  }
  timer = window.setTimeout(() => latest.run(countTokens), PAUSE_MS);
}

/** @param {AbortSignal} signal */
async function countTokens(signal) {
  const model = select.value;
  const text = box.value;
  const answer = await tokenize(model, text, signal);
  if (signal.aborted) return;
  counting = answer;
  showCount(`${integer(answer.n_tokens)} of ${counted(answer.limit, "token")}`, answer.over_limit);
  if (answer.over_limit) say(overLimit(answer));
  const shown = answer.tokens.slice(0, PREVIEWED).map((token) => tokenText(token.label, token.added ? "added" : ""));
  const rest = answer.n_tokens - shown.length;
  replace(preview, ...shown, rest > 0 && el("span", { class: "muted" }, `and ${counted(rest, "more token", "more tokens")}`));
  preview.hidden = shown.length === 0;
}

/** @param {Tokenization} counted */
function overLimit({ n_tokens: n, limit }) {
  return `The prompt has ${integer(n)} tokens; this model takes ${integer(limit)} here. Shorten it by ${integer(n - limit)}.`;
}

function modelChanged() {
  const model = chosenModel();
  modelNote.textContent = model?.message ?? "";
  textChanged();
}

/** @param {SubmitEvent} event */
async function submit(event) {
  event.preventDefault();
  const text = box.value;
  if (text.trim() === "") {
    say("The prompt is empty. Type some text, or take one of the examples.");
    box.focus();
    return;
  }
  if (counting?.over_limit) {
    say(overLimit(counting));
    box.focus();
    return;
  }
  say("");
  run.disabled = true;
  run.textContent = "Starting…";
  try {
    const analysis = await startAnalysis(select.value, text);
    rememberAnalysis({ id: analysis.id, text, model: analysis.model.title, ownerToken: analysis.owner_token ?? "" });
    location.assign(`/a/${encodeURIComponent(analysis.id)}`);
  } catch (error) {
    const { title, detail } = asFailure(error);
    say(`${title}. ${detail}`);
    ready();
  }
}

/** @param {typeof EXAMPLES[number]} example */
function exampleItem({ title, text, why }) {
  const take = () => {
    box.value = text;
    textChanged();
    box.focus();
  };
  return el(
    "li",
    {},
    el(
      "button",
      { class: "example", type: "button", onclick: take },
      el("span", { class: "example-title" }, title),
      el("bdi", { class: "example-text" }, text),
      el("span", { class: "example-why" }, why),
    ),
  );
}

function ready() {
  run.disabled = false;
  run.textContent = "Analyse";
}

function showRecent() {
  const list = recentAnalyses();
  byId("recent-empty", HTMLElement).hidden = list.length > 0;
  replace(
    byId("recent", HTMLElement),
    ...list.map((one) =>
      el(
        "li",
        {},
        el("a", { href: `/a/${encodeURIComponent(one.id)}` }, el("bdi", { class: "recent-text" }, one.text), el("span", { class: "muted small" }, `${one.model}, ${ago(one.at)}`)),
        el("button", {
          class: "icon-button", type: "button", "aria-label": "Take off this list", title: "Take off this list",
          onclick: () => {
            forgetAnalysis(one.id);
            showRecent();
          },
        }, "✕"),
      ),
    ),
  );
}

bindThemeButton(byId("theme", HTMLButtonElement));
box.addEventListener("input", textChanged);
select.addEventListener("change", modelChanged);
form.addEventListener("submit", submit);
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
replace(byId("examples", HTMLElement), ...EXAMPLES.map(exampleItem));
// A page that comes back from the browser's cache would still say "Starting…".
window.addEventListener("pageshow", () => {
  ready();
  showRecent();
});
const handedOver = takePrompt();
if (handedOver) {
  box.value = handedOver.text;
  if ([...select.options].some(({ value }) => value === handedOver.model)) select.value = handedOver.model;
}
modelChanged();
