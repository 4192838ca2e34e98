import { fireEvent, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter, useLocation } from "react-router";
import { describe, expect, it } from "vitest";
import { DateField } from "@/components/ui/field";
import { useAddress } from "./use-address";
import { useWritten } from "./use-written";

function Page() {
  const { address, patch, clear } = useAddress();
  return (
    <>
      <input aria-label="Name" {...useWritten("name")} />
      <DateField
        label="Day"
        value={address.get("day") ?? ""}
        onChange={(event) => patch({ day: event.target.value })}
      />
      <button type="button" onClick={clear}>
        Clear
      </button>
      <output>{decodeURIComponent(useLocation().search)}</output>
    </>
  );
}

const show = (at: string) =>
  render(
    <MemoryRouter initialEntries={[at]}>
      <Page />
    </MemoryRouter>,
  );

describe("what is written", () => {
  it("goes into the address, and is taken back with it", async () => {
    show("/?name=gate");
    const field = screen.getByLabelText("Name");
    expect(field).toHaveValue("gate");
    await userEvent.type(field, "way");
    expect(screen.getByRole("status")).toHaveTextContent("?name=gateway");
    await userEvent.click(screen.getByRole("button", { name: "Clear" }));
    expect(field).toHaveValue("");
  });

  it("waits in its field until a composed word is whole", () => {
    show("/");
    const field = screen.getByLabelText("Name");
    field.focus();
    fireEvent.compositionStart(field);
    for (const value of ["お", "おう"]) {
      fireEvent.input(field, { target: { value }, isComposing: true });
      expect(field).toHaveValue(value);
      expect(screen.getByRole("status")).toBeEmptyDOMElement();
    }
    fireEvent.input(field, { target: { value: "横断" }, isComposing: true });
    fireEvent.compositionEnd(field);
    expect(screen.getByRole("status")).toHaveTextContent("?name=横断");
  });

  it("is no day before its year is whole", () => {
    show("/?day=2026-02-03");
    const field = screen.getByLabelText("Day");
    field.focus();
    fireEvent.change(field, { target: { value: "0020-02-03" } });
    expect(field).toHaveValue("0020-02-03");
    expect(screen.getByRole("status")).toHaveTextContent("?day=2026-02-03");
    fireEvent.change(field, { target: { value: "2025-02-03" } });
    expect(screen.getByRole("status")).toHaveTextContent("?day=2025-02-03");
  });
});
