/**
 * Light and dark. `static/js/theme.js` has set the choice before the first paint; this reads colours and changes it.
 * @typedef {import("./colour.js").Rgb} Rgb
 *
 * @typedef {Object} Palette
 * @property {string} ink @property {string} muted @property {string} line @property {string} surface
 * @property {string} unseen @property {string} unseenLine
 * @property {string} query @property {string} key @property {string} bar
 * @property {Rgb[]} sequential @property {Rgb[]} diverging
 * @property {string} sans @property {string} mono
 */
import { parseHex } from "./colour.js";

const KEPT_AS = "headwater.theme";
const STOPS = { seq: 7, div: 9 };

/** @type {Palette | null} */
let known = null;
/** @type {Set<() => void>} */
const listeners = new Set();

/**
 * The colours of the current theme, as the style sheet gives them.
 * @returns {Palette}
 */
export function palette() {
  if (known) return known;
  const style = getComputedStyle(document.documentElement);
  /** @param {string} name */
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  /** @param {"seq" | "div"} name */
  const stops = (name) => Array.from({ length: STOPS[name] }, (_, i) => parseHex(read(`${name}-${i}`)));
  known = {
    ink: read("ink"), muted: read("muted"), line: read("line"), surface: read("surface"),
    unseen: read("unseen"), unseenLine: read("unseen-line"),
    query: read("query"), key: read("key"), bar: read("bar"),
    sequential: stops("seq"), diverging: stops("div"),
    sans: read("sans"), mono: read("mono"),
  };
  return known;
}

/**
 * Calls after every change of theme.
 * @param {() => void} hear
 * @returns {() => void} ends it
 */
export function onTheme(hear) {
  listeners.add(hear);
  return () => listeners.delete(hear);
}

function changed() {
  known = null;
  for (const hear of listeners) hear();
}

const systemIsDark = () => matchMedia("(prefers-color-scheme: dark)");

/** @returns {"light" | "dark"} */
function current() {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

function chosen() {
  try {
    return localStorage.getItem(KEPT_AS);
  } catch {
    return null;
  }
}

/**
 * Makes a button switch between light and dark; until it is used, the page follows the system.
 * @param {HTMLButtonElement} button
 */
export function bindThemeButton(button) {
  /** @param {"light" | "dark"} theme */
  const use = (theme) => {
    document.documentElement.dataset.theme = theme;
    const words = `Use the ${theme === "dark" ? "light" : "dark"} theme`;
    button.setAttribute("aria-label", words);
    button.title = words;
    changed();
  };
  button.addEventListener("click", () => {
    const other = current() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEPT_AS, other);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    use(other);
  });
  systemIsDark().addEventListener("change", ({ matches }) => {
    if (!chosen()) use(matches ? "dark" : "light");
  });
  use(current());
}
