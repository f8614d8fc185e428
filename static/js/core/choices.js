/**
 * A row of buttons of which exactly one holds.
 *
 * @typedef {Object} Choices
 * @property {HTMLElement} element
 * @property {(value: string) => void} show marks the one that holds
 */
import { el } from "./dom.js";

/**
 * @template {string} T
 * @param {{label: string, options: {value: T, text: string, title?: string}[], onChoose: (value: T) => void, visible?: boolean}} options
 * @returns {Choices}
 */
export function createChoices({ label, options, onChoose, visible = false }) {
  const buttons = options.map(({ value, text, title }) =>
    el("button", { type: "button", title, "aria-pressed": "false", "data-value": value, onclick: () => onChoose(value) }, text),
  );
  const group = el("div", { class: "choices", role: "group", "aria-label": label }, ...buttons);
  const element = visible ? el("div", { class: "choices-field" }, el("span", { class: "choices-label", "aria-hidden": "true" }, label), group) : group;
  return {
    element,
    show(value) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === value));
    },
  };
}
