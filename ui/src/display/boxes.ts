// Where the analyzer's boxes are on the picture that is shown.
//
// Boxes are shares of the infer picture. The full picture has the same shape, and so the same shares, unless bars were
// put around the infer picture to give it another shape; then those are not part of the full one. Bars that the camera
// itself has are in both. The server draws by the same rule (domain/boxes.py).

import type { PictureKind } from "@/api/addresses";
import type { Box, Frame } from "@/api/types";

export interface Placed {
  left: number; // all four in per cent of the picture
  top: number;
  width: number;
  height: number;
}

type Sizes = Pick<Frame, "full_w" | "full_h" | "infer_w" | "infer_h" | "letterbox">;
type Bars = NonNullable<Frame["letterbox"]>;

const NO_BARS: Bars = { top: 0, left: 0, bottom: 0, right: 0 };
// Sizes are rounded to pixels, so two pictures of one shape differ by this much at most (width over height).
const SHAPE_SLACK = 0.02;

/** Null where the box is wholly in a bar, which the full picture does not have. */
export function placeBox(box: Box, sizes: Sizes, kind: PictureKind): Placed | null {
  const bars = kind === "full" ? addedBars(sizes) : NO_BARS;
  const [left, right] = along(box.x1, box.x2, sizes.infer_w ?? 1, bars.left, bars.right);
  const [top, bottom] = along(box.y1, box.y2, sizes.infer_h ?? 1, bars.top, bars.bottom);
  return left < right && top < bottom ? { left, top, width: right - left, height: bottom - top } : null;
}

/** The bars that the infer picture has and the full picture has not. */
function addedBars({ full_w, full_h, infer_w, infer_h, letterbox }: Sizes): Bars {
  if (!letterbox || !full_w || !full_h || !infer_w || !infer_h) return NO_BARS;
  const isOneShape = Math.abs(full_w * infer_h - infer_w * full_h) <= SHAPE_SLACK * infer_w * full_h;
  const isNothingBetween = letterbox.left + letterbox.right >= infer_w || letterbox.top + letterbox.bottom >= infer_h;
  return isOneShape || isNothingBetween ? NO_BARS : letterbox;
}

function along(from: number, to: number, size: number, near: number, far: number): [number, number] {
  const share = (value: number) => (value * size - near) / (size - near - far);
  return [percent(share(from)), percent(share(to))];
}

const percent = (share: number) => Math.min(100, Math.max(0, share * 100));

/** Width over height of a frame's picture; 16:9 where it is not known. */
export function aspectOf(frame: Pick<Frame, "full_w" | "full_h" | "infer_w" | "infer_h">, kind: PictureKind): number {
  const [width, height] = kind === "full" ? [frame.full_w, frame.full_h] : [frame.infer_w, frame.infer_h];
  return width && height ? width / height : 16 / 9;
}
