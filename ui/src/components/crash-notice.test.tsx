import { render, screen } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import "@/i18n";
import { CrashGuard } from "./crash-notice";

function Broken({ message }: { message: string }): never {
  throw new TypeError(message);
}

function show(message: string) {
  // React tells the console of every error that a guard caught.
  const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
  render(
    <CrashGuard>
      <Broken message={message} />
    </CrashGuard>,
  );
  quiet.mockRestore();
}

describe("a page that can't be drawn", () => {
  it("says what went wrong", () => {
    show("x is undefined");
    expect(screen.getByText("x is undefined")).toBeVisible();
  });

  it.each([
    "Failed to fetch dynamically imported module: http://cameras.example/assets/system-1.js",
    "error loading dynamically imported module: http://cameras.example/assets/system-1.js",
    "Importing a module script failed.",
  ])("because its file did not come (%s) waits for the server", (message) => {
    vi.stubGlobal("fetch", vi.fn().mockRejectedValue(new TypeError("Failed to fetch")));
    show(message);
    expect(screen.getByRole("alert")).toHaveTextContent("unreachable");
    expect(screen.queryByText(message)).toBeNull();
    vi.unstubAllGlobals();
  });
});
