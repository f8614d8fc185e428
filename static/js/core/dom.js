/**
 * Building elements. Text goes in as text, never as markup.
 * @typedef {Node | string | null | undefined | false} Child
 */

/**
 * An element with properties and children. Names with a hyphen, `role` and `for` become attributes, `class` the class,
 * `on…` listeners, everything else properties.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "class") element.className = String(value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, String(value));
    else /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (element))[name] = value;
  }
  append(element, children);
  return element;
}

/**
 * @param {Element} parent
 * @param {Child[]} children
 */
export function append(parent, children) {
  parent.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
}

/**
 * @param {Element} parent
 * @param {...Child} children
 */
export function replace(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/**
 * A token's label, kept apart from the writing direction of its surroundings.
 * @param {string} label
 * @param {string} [extra] further classes
 */
export function tokenText(label, extra = "") {
  return el("bdi", { class: `token-text ${extra}`.trim() }, label);
}

/**
 * The element with this id.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function byId(id, kind) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`The page has no ${kind.name} #${id}.`);
  return element;
}

/**
 * What the server put into the page, or null where it cannot be read.
 * @returns {any}
 */
export function pageData() {
  try {
    return JSON.parse(document.getElementById("page-data")?.textContent ?? "null");
  } catch {
    return null;
  }
}
