import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { RegionEditor } from "./region-editor";

it("draws on the small picture where there is no large one", async () => {
  render(<RegionEditor picture="/large.jpg" small="/small.jpg" regions={[]} onChange={() => {}} />);
  const shown = () => screen.getByRole("img").getAttribute("src");
  expect(shown()).toBe("/large.jpg");
  fireEvent.error(screen.getByRole("img"));
  expect(shown()).toBe("/small.jpg");
  fireEvent.error(screen.getByRole("img"));
  expect(shown()).toBe("/small.jpg");
});
