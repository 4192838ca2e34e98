import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { usePicture } from "./use-picture";

/** What the browser was asked to load, each with what becomes of it. */
let asked: { src: string; onload: () => void; onerror: () => void }[] = [];

class AskedImage {
  src = "";
  onload = () => undefined;
  onerror = () => undefined;
  constructor() {
    asked.push(this);
  }
}

beforeEach(() => {
  asked = [];
  vi.useFakeTimers();
  vi.stubGlobal("Image", AskedImage);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("a picture", () => {
  it("stays until the next one is ready", () => {
    const { result, rerender } = renderHook(({ src }) => usePicture(src), { initialProps: { src: "/one" } });
    act(() => asked.at(-1)?.onload());
    rerender({ src: "/two" });
    expect(result.current).toEqual({ src: "/one", failed: false });
    act(() => asked.at(-1)?.onload());
    expect(result.current).toEqual({ src: "/two", failed: false });
  });

  it("that did not come is asked for again, later and later, and not for ever", () => {
    const { result } = renderHook(() => usePicture("/one"));
    for (let times = 0; times < 10; times += 1) {
      act(() => asked.at(-1)?.onerror());
      expect(result.current).toEqual({ src: null, failed: true });
      act(() => vi.runAllTimers());
    }
    expect(asked.map((one) => one.src)).toEqual(["/one", "/one", "/one", "/one"]);
    act(() => asked.at(-1)?.onload());
    expect(result.current).toEqual({ src: "/one", failed: false });
  });

  it("that nobody wants any more is not asked for again", () => {
    const { unmount } = renderHook(() => usePicture("/one"));
    act(() => asked.at(-1)?.onerror());
    unmount();
    vi.runAllTimers();
    expect(asked).toHaveLength(1);
  });
});
