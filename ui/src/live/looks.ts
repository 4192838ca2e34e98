// The last minutes of a camera as its looks recorded them, and where in them somebody is.

import { useQuery } from "@tanstack/react-query";
import { answered, api } from "@/api/client";
import { serverNow } from "@/api/server-clock";
import type { Frame } from "@/api/types";

export const SPAN_MS = 10 * 60_000;
const EVERY_MS = 10_000;
const LOOKS_MAX = 200;

/** Looks with pictures, the oldest first. */
export function useRecentLooks(cameraId: string) {
  return useQuery({
    queryKey: ["looks", cameraId],
    queryFn: async (): Promise<Frame[]> => {
      const asked = { from: serverNow() - SPAN_MS, only: "pictures", limit: LOOKS_MAX } as const;
      const params = { path: { camera_id: cameraId }, query: asked };
      const { frames } = await answered(api.GET("/api/cameras/{camera_id}/frames", { params }));
      return [...frames].reverse();
    },
    refetchInterval: EVERY_MS,
  });
}

/** The look that is nearest to a moment. */
export function nearest(looks: readonly Frame[], at: number): Frame | undefined {
  const away = (one: Frame) => Math.abs(one.captured_at - at);
  return looks.reduce<Frame | undefined>((best, one) => (best && away(best) <= away(one) ? best : one), undefined);
}

/** The look before or after another one; nothing beyond the newest, where live begins. */
export function beside(looks: readonly Frame[], chosen: Frame | null, by: number): Frame | null {
  if (!chosen) return by < 0 ? (looks.at(-1) ?? null) : null;
  const place = looks.findIndex((one) => one.frame_uuid === chosen.frame_uuid);
  return looks[Math.max(0, place + by)] ?? null;
}
