/**
 * The HTTP interface under /api/v1. Every function throws `Failure`, or an AbortError where its signal was used.
 * @typedef {import("./types.js").Analysis} Analysis
 * @typedef {import("./types.js").Tokenization} Tokenization
 * @typedef {import("./types.js").Envelope} Envelope
 */
import { Failure, failureOf, isAbort } from "./errors.js";

const BASE = "/api/v1";

/**
 * The JSON of an answer.
 * @param {string} url
 * @param {RequestInit} [init]
 * @returns {Promise<any>}
 */
export async function getJson(url, init = {}) {
  let response;
  try {
    response = await fetch(url, { ...init, headers: { Accept: "application/json", ...init.headers } });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Failure("network", "The server did not answer", "Check the connection, then try again.");
  }
  if (response.ok) return response.json();
  throw await readProblem(response);
}

/**
 * @param {Response} response
 * @returns {Promise<Failure>}
 */
async function readProblem(response) {
  try {
    const body = await response.json();
    if (typeof body?.title === "string") return failureOf({ status: response.status, ...body });
  } catch (error) {
    if (isAbort(error)) throw error;
  }
  return new Failure("error", `The server answered ${response.status}`, "Its answer was not one this page knows.", {
    status: response.status,
  });
}

/**
 * @param {unknown} body
 * @param {AbortSignal} [signal]
 * @returns {RequestInit}
 */
function post(body, signal) {
  return { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal };
}

/**
 * @param {string} model
 * @param {string} text
 * @param {AbortSignal} [signal]
 * @returns {Promise<Tokenization>}
 */
export function tokenize(model, text, signal) {
  return getJson(`${BASE}/tokenizations`, post({ model, text }, signal));
}

/**
 * Queues an analysis. The answer carries the owner's token.
 * @param {string} model
 * @param {string} text
 * @param {AbortSignal} [signal]
 * @returns {Promise<Analysis>}
 */
export function startAnalysis(model, text, signal) {
  return getJson(`${BASE}/analyses`, post({ model, text }, signal));
}

/**
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Analysis>}
 */
export function getAnalysis(id, signal) {
  return getJson(`${BASE}/analyses/${encodeURIComponent(id)}`, { signal });
}

/**
 * @param {string} id
 * @param {string} ownerToken
 */
export async function deleteAnalysis(id, ownerToken) {
  const response = await fetch(`${BASE}/analyses/${encodeURIComponent(id)}`, {
    method: "DELETE",
    headers: { "X-Owner-Token": ownerToken },
  });
  if (!response.ok) throw await readProblem(response);
}

/**
 * The address of a tensor with some of its axes fixed, the same for the same question.
 * @param {string} id
 * @param {string} name
 * @param {Record<string, number | null>} [fixed] null: not fixed
 */
export function tensorUrl(id, name, fixed = {}) {
  return analysisUrl(id, `tensors/${name}`, fixed);
}

/**
 * The address of an analysis, or of something that is read out of it; the same for the same question.
 * @param {string} id
 * @param {string} [what]
 * @param {Record<string, number | string | null>} [asked] null: left out
 */
export function analysisUrl(id, what, asked = {}) {
  const analysis = `${BASE}/analyses/${encodeURIComponent(id)}`;
  return withQuery(what === undefined ? analysis : `${analysis}/${what}`, asked);
}

/**
 * @param {string} model
 * @param {string} what
 * @param {Record<string, number | string | null>} [asked]
 */
export function modelUrl(model, what, asked = {}) {
  return withQuery(`${BASE}/models/${encodeURIComponent(model)}/${what}`, asked);
}

/**
 * @param {string} path
 * @param {Record<string, number | string | null>} asked
 */
function withQuery(path, asked) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) if (value !== null) query.set(name, String(value));
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** @param {string} id */
export function eventsUrl(id) {
  return analysisUrl(id, "events");
}
