import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CopiedText } from "./copied-text";

const ADDRESS = "https://house/share/secret";

afterEach(() => {
  vi.unstubAllGlobals();
  Reflect.deleteProperty(document, "execCommand");
});

function shown(): HTMLInputElement {
  render(<CopiedText text={ADDRESS} label="Address" />);
  return screen.getByLabelText("Address");
}

describe("what is to be copied", () => {
  it("goes to the clipboard", async () => {
    const user = userEvent.setup();
    shown();
    await user.click(screen.getByRole("button"));
    expect(await navigator.clipboard.readText()).toBe(ADDRESS);
    expect(screen.getByRole("button", { name: /copied/i })).toBeVisible();
  });

  it("is copied as it is selected, where a page over http has no clipboard", async () => {
    let copied = "";
    const user = userEvent.setup();
    const field = shown();
    vi.stubGlobal("navigator", { ...navigator, clipboard: undefined });
    Object.assign(document, {
      execCommand: () => {
        copied = field.value.slice(field.selectionStart ?? 0, field.selectionEnd ?? 0);
        return true;
      },
    });
    await user.click(screen.getByRole("button"));
    expect(copied).toBe(ADDRESS);
    expect(screen.getByRole("button", { name: /copied/i })).toBeVisible();
  });
});
