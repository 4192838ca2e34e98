// Signing in with a provider: where its button leads, and which problems the server tells by a code.

/** As the server's `Failure` has them; a test of the server holds both together. */
export const OIDC_PROBLEMS = [
  "off",
  "flow",
  "denied",
  "refused",
  "away",
  "token",
  "unknown",
  "disabled",
  "no_group",
  "no_login",
  "login_taken",
  "too_many",
  "busy",
] as const;

export type OidcProblem = (typeof OIDC_PROBLEMS)[number];

export const isOidcProblem = (code: string): code is OidcProblem =>
  (OIDC_PROBLEMS as readonly string[]).includes(code);

/** The address of the button, with the page to go to afterwards. */
export function oidcStart(startUrl: string, target: string): string {
  return target === "/" ? startUrl : `${startUrl}?next=${encodeURIComponent(target)}`;
}
