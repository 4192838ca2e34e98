// The typed client of the server's API. Every request goes through it; it adds the CSRF token and the language,
// and turns every failure into a Problem.

import createClient, { type Middleware } from "openapi-fetch";
import { asProblem, problemOf } from "./problem";
import type { paths } from "./schema";
import { noteServerDate } from "./server-clock";

const SAFE_METHODS = new Set(["GET", "HEAD"]);

let csrfToken = "";

/** Known since GET /api/session; sent with whatever changes something. */
export function setCsrfToken(token: string): void {
  csrfToken = token;
}

const headers: Middleware = {
  onRequest({ request }) {
    request.headers.set("Accept-Language", document.documentElement.lang);
    if (csrfToken && !SAFE_METHODS.has(request.method)) request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
  onResponse({ response }) {
    noteServerDate(response.headers.get("Date"));
  },
  onError({ error }) {
    return asProblem(error);
  },
};

export const api = createClient<paths>({
  baseUrl: globalThis.location?.origin ?? "",
  // Looked up at each call: tests put another one in its place.
  fetch: (request) => globalThis.fetch(request),
});
api.use(headers);

type Answered<T> = { data?: T; error?: unknown; response: Response };

/** The answer's body; throws a Problem when it is an error. */
export async function answered<T>(asked: Promise<Answered<T>>): Promise<T> {
  const { data, error, response } = await asked.catch((failure: unknown) => {
    throw asProblem(failure);
  });
  if (!response.ok) throw problemOf(response.status, error);
  return data as T;
}
