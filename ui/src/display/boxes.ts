// Where the analyzer's boxes are on the picture that is shown.
//
// Boxes are shares of the infer picture, whose letterbox margins are part of it; the full picture has none.

import type { PictureKind } from "@/api/addresses";
import type { Box, Frame } from "@/api/types";

export interface Placed {
  left: number; // all four in per cent of the picture
  top: number;
  width: number;
  height: number;
}

type Sizes = Pick<Frame, "infer_w" | "infer_h" | "letterbox">;

export function placeBox(box: Box, sizes: Sizes, kind: PictureKind): Placed {
  const [left, right] = along(
    box.x1,
    box.x2,
    sizes.infer_w,
    kind === "full" ? sizes.letterbox : null,
    "left",
    "right",
  );
  const [top, bottom] = along(
    box.y1,
    box.y2,
    sizes.infer_h,
    kind === "full" ? sizes.letterbox : null,
    "top",
    "bottom",
  );
  return { left, top, width: right - left, height: bottom - top };
}

function along(
  from: number,
  to: number,
  size: number | null | undefined,
  margins: Frame["letterbox"],
  near: "left" | "top",
  far: "right" | "bottom",
): [number, number] {
  const inner = size && margins ? size - margins[near] - margins[far] : 0;
  const share = (value: number) => (size && margins && inner > 0 ? (value * size - margins[near]) / inner : value);
  return [percent(share(from)), percent(share(to))];
}

const percent = (share: number) => Math.min(100, Math.max(0, share * 100));

/** Width over height of a frame's picture; 16:9 where it is not known. */
export function aspectOf(frame: Pick<Frame, "full_w" | "full_h" | "infer_w" | "infer_h">, kind: PictureKind): number {
  const [width, height] = kind === "full" ? [frame.full_w, frame.full_h] : [frame.infer_w, frame.infer_h];
  return width && height ? width / height : 16 / 9;
}
