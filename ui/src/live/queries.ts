// What live view asks for beside leases. Keys begin with the noun, as those of the pages do.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answered, api } from "@/api/client";
import { keys } from "@/api/queries";
import type { Camera, SuggestionShown } from "@/api/types";

/** A still is a few seconds old at most while it is all that is shown. */
const STILL_EVERY_MS = 5000;
/** The feed tells of a new suggestion; the score's decay it does not tell. */
const SUGGESTION_EVERY_MS = 15_000;

interface CameraPages {
  pages: { cameras: Camera[] }[];
}

/** One camera; at first as a list that is shown already has it. Its still is kept fresh while that is looked at. */
export function useCamera(cameraId: string, isStillSeen: boolean) {
  const client = useQueryClient();
  return useQuery({
    queryKey: [...keys.cameras, cameraId],
    queryFn: (): Promise<Camera> =>
      answered(api.GET("/api/cameras/{camera_id}", { params: { path: { camera_id: cameraId } } })),
    placeholderData: () =>
      client
        .getQueryData<CameraPages>(keys.cameras)
        ?.pages.flatMap((page) => page.cameras)
        .find((one) => one.camera_id === cameraId),
    refetchInterval: isStillSeen ? STILL_EVERY_MS : false,
  });
}

export function useSuggestion() {
  return useQuery({
    queryKey: keys.suggestion,
    queryFn: () => answered(api.GET("/api/suggest")),
    refetchInterval: SUGGESTION_EVERY_MS,
  });
}

export function usePinSuggestion() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ cameraId, minutes }: { cameraId: string; minutes: number }) =>
      answered(api.POST("/api/suggest/manual", { body: { camera_id: cameraId, duration_sec: minutes * 60 } })),
    onSuccess: (shown: SuggestionShown) => client.setQueryData(keys.suggestion, shown),
  });
}

export function useClearSuggestion() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => answered(api.DELETE("/api/suggest")),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.suggestion }),
  });
}
