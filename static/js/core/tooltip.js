/**
 * One small box beside the pointer, for every view. It repeats what can also be read elsewhere, so it is hidden from
 * assistive technology.
 */
import { el, replace } from "./dom.js";

const OFFSET_PX = 14;

/** @type {HTMLElement | null} */
let box = null;

/**
 * @param {Node[]} content
 * @param {number} x of the pointer, in the window
 * @param {number} y
 */
export function showTooltip(content, x, y) {
  box ??= document.body.appendChild(el("div", { class: "tooltip", "aria-hidden": "true" }));
  replace(box, ...content);
  box.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = box;
  const left = x + OFFSET_PX + width > window.innerWidth ? x - OFFSET_PX - width : x + OFFSET_PX;
  const top = y + OFFSET_PX + height > window.innerHeight ? y - OFFSET_PX - height : y + OFFSET_PX;
  box.style.transform = `translate(${Math.max(0, left)}px, ${Math.max(0, top)}px)`;
}

export function hideTooltip() {
  if (box) box.hidden = true;
}

/**
 * Lines of text for a tooltip, the first one strong.
 * @param {string[]} lines
 */
export function tooltipLines(lines) {
  return lines.map((line, i) => el("div", { class: i === 0 ? "tooltip-title" : "" }, line));
}
