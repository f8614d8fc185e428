/**
 * The few lines of Python that fetch again what the page shows. Paths into an answer are written with dots, as in
 * `softmax.competitors.0.score`; parts that are whole numbers are indices.
 */

const FETCH = (/** @type {string} */ origin, /** @type {string} */ url) => `import json
import urllib.request

origin = ${JSON.stringify(origin)}
with urllib.request.urlopen(origin + ${JSON.stringify(url)}) as reply:
    answer = json.load(reply)`;

/**
 * Lines that the server has written, with this page's address in place of the one they begin with.
 * @param {string} code
 * @param {string} origin
 */
export function withOrigin(code, origin) {
  return code.trim().replace(/^origin = ".*"$/m, `origin = ${JSON.stringify(origin)}`);
}

/**
 * @param {string} origin
 * @param {string} url path in the API, with its query
 */
export function fetchCode(origin, url) {
  return FETCH(origin, url);
}

/**
 * The lines for one element of a tensor.
 * @param {string} origin
 * @param {string} url
 * @param {number[]} [index] of what is left of its axes; without it, the whole tensor
 */
export function tensorCode(origin, url, index) {
  const element = index?.length ? `values[${index.join(", ")}]` : "values";
  return `import base64
import json
import urllib.request

import numpy as np

origin = ${JSON.stringify(origin)}
with urllib.request.urlopen(origin + ${JSON.stringify(url)}) as reply:
    data = json.load(reply)["data"]
values = np.frombuffer(base64.b64decode(data["bdata"]), "<" + data["dtype"])
values = values.reshape([int(size) for size in data["shape"].split(",")])
print(${element})`;
}

/**
 * Lines that fetch an answer, and then print one number of it.
 * @param {string} code
 * @param {string} path "" for the whole answer
 */
export function printed(code, path) {
  const keys = path === "" ? [] : path.split(".");
  const place = keys.map((key) => (/^\d+$/.test(key) ? `[${key}]` : `[${JSON.stringify(key)}]`)).join("");
  // The server's lines end by printing what they think is asked for; here one number is.
  return `${code.trim().replace(/(\n+print\(.*\))+$/, "")}\nprint(answer${place})`;
}
