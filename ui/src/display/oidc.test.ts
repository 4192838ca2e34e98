import { describe, expect, it } from "vitest";
import { isOidcProblem, oidcStart } from "./oidc";

describe("signing in with a provider", () => {
  it("leads back to the page that was asked for", () => {
    const start = "https://cameras.example/api/oidc/start";
    expect(oidcStart(start, "/")).toBe(start);
    expect(oidcStart(start, "/events?a=b&c=d")).toBe(`${start}?next=%2Fevents%3Fa%3Db%26c%3Dd`);
  });

  it("knows its problems by their codes alone", () => {
    expect(isOidcProblem("away")).toBe(true);
    expect(isOidcProblem("<b>away</b>")).toBe(false);
    expect(isOidcProblem("toString")).toBe(false);
  });
});
