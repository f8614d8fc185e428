/**
 * Text for the clipboard: copied where the browser allows it, else shown in a box to be copied by hand.
 */
import { el } from "./dom.js";

const CONFIRMED_MS = 2500;

/** @type {HTMLElement | null} */
let toast = null;
let timer = 0;

/** @param {string} text said for a moment, also to assistive technology */
export function confirm(text) {
  toast ??= document.body.appendChild(el("p", { class: "toast", role: "status" }));
  toast.textContent = text;
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    if (toast) toast.textContent = "";
  }, CONFIRMED_MS);
}

/**
 * @param {string} text
 * @returns {Promise<boolean>} whether it is in the clipboard; without a secure connection a page may not write there
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Copies lines of Python; where that is not allowed, shows them.
 * @param {string} code
 */
export async function copyCode(code) {
  if (await copyText(code)) confirm("Copied as Python");
  else showCode("Python for this number", code);
}

/**
 * Shows lines of code in a dialog, with a button that copies them.
 * @param {string} title
 * @param {string} code
 */
export function showCode(title, code) {
  const text = el("textarea", { class: "code-text", readOnly: true, spellcheck: false, rows: Math.min(24, code.split("\n").length + 1), "aria-label": title });
  text.value = code;
  const copy = el("button", { class: "button primary", type: "button" }, "Copy");
  const close = el("button", { class: "button", type: "button" }, "Close");
  const dialog = el("dialog", { class: "code-dialog", "aria-label": title }, el("h2", {}, title), text, el("div", { class: "actions" }, copy, close));
  copy.addEventListener("click", async () => {
    if (await copyText(code)) {
      confirm("Copied");
      dialog.close();
    } else {
      text.select();
      confirm("Marked: copy it with the keyboard");
    }
  });
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
