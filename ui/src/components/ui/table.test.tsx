import { render, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { Cell, Row, Table } from "./table";

/** On a telephone: there the heading stands beside its value, in the cell. */
const headingsIn = (row: HTMLElement) =>
  within(row)
    .getAllByRole("cell")
    .map((cell) => cell.querySelector("[aria-hidden=true]")?.textContent ?? null);

const drawn = (narrow: boolean) =>
  render(
    <Table label="Looks" headings={["Time", "Why", "Left"]} narrow={narrow}>
      <Row>
        <Cell column={0}>10:00</Cell>
        <Cell column={1}>
          {"–"}
          {false}
        </Cell>
        <Cell column={2}>– 5 s</Cell>
      </Row>
    </Table>,
  );

describe("a table on a telephone", () => {
  it("is a list of cards with headings beside the values, and leaves out what says nothing", () => {
    drawn(false);
    const [, row] = screen.getAllByRole("row");
    expect(headingsIn(row as HTMLElement)).toEqual([null, "Why", "Left"]);
    const hidden = screen.getAllByRole("cell").map((cell) => cell.classList.contains("max-sm:hidden"));
    expect(hidden).toEqual([false, true, false]);
  });

  it("stays a table where its columns are few and short", () => {
    drawn(true);
    const [, row] = screen.getAllByRole("row");
    expect(headingsIn(row as HTMLElement)).toEqual([null, null, null]);
    expect(screen.getAllByRole("cell").some((cell) => cell.classList.contains("max-sm:hidden"))).toBe(false);
  });
});
