// One camera: what it is, changing it, and what it saw in numbers.

import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { dayOf, startOfDay, startOfNextDay } from "@/display/times";
import { useChanging } from "./changing";
import { answered, api } from "./client";
import { serverNow } from "./server-clock";
import type { CameraAsked, CameraChange, Errand, ImportAnswer } from "./types";

const HOUR_MS = 3_600_000;
/** The server makes its figures every two minutes. */
const FIGURES_MS = 60_000;
const FRAMES_PAGE = 48;

const path = (camera_id: string) => ({ params: { path: { camera_id } } });

export function useCamera(cameraId: string) {
  return useQuery({
    queryKey: ["camera", cameraId],
    queryFn: () => answered(api.GET("/api/cameras/{camera_id}", path(cameraId))),
    // Stills of quiet looks are not in the feed.
    refetchInterval: ({ state }) => Math.max(2, state.data?.polling_interval_sec ?? 5) * 1000,
  });
}

/** Why a camera runs, or does not. */
export function useWhy(cameraId: string) {
  return useQuery({
    queryKey: ["camera", cameraId, "why"],
    queryFn: () => answered(api.GET("/api/cameras/{camera_id}/why", path(cameraId))),
  });
}

/** By the hour how often a camera was looked at, and when nobody did: on a day of the reader's, or in the last 24 hours. */
export function useCameraLooks(cameraId: string, day: string | null) {
  return useQuery({
    queryKey: ["camera", cameraId, "looks", day],
    queryFn: () => {
      const [from, to] = day === null ? [] : [startOfDay(day), startOfNextDay(day)];
      const query = from !== undefined && to !== undefined ? { from, to } : {};
      const params = { path: { camera_id: cameraId }, query };
      return answered(api.GET("/api/cameras/{camera_id}/looks", { params }));
    },
    // The chart stays while another day's is on its way; another camera's would mislead.
    placeholderData: (before) => (before?.camera_id === cameraId ? before : undefined),
    staleTime: FIGURES_MS,
    refetchInterval: () => (day !== null && day < dayOf(serverNow()) ? false : FIGURES_MS),
  });
}

/** The pictures of an hour that were kept though nothing happened, newest first. */
export function useQuietFrames(cameraId: string, hour: number) {
  return useInfiniteQuery({
    queryKey: ["camera", cameraId, "quiet", hour],
    queryFn: ({ pageParam }) => {
      const asked = { from: hour, to: hour + HOUR_MS, only: "quiet", limit: FRAMES_PAGE } as const;
      const query = { ...asked, ...(pageParam ? { before: pageParam } : {}) };
      return answered(
        api.GET("/api/cameras/{camera_id}/frames", { params: { path: { camera_id: cameraId }, query } }),
      );
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
    staleTime: FIGURES_MS,
  });
}

export const useSites = () =>
  useQuery({ queryKey: ["sites"], queryFn: () => answered(api.GET("/api/sites")), staleTime: 60_000 });

const useCameraChange = <Given, Answer>(change: (given: Given) => Promise<Answer>) =>
  useChanging(["cameras", "camera"], change);

export const useAddCamera = () =>
  useCameraChange((body: CameraAsked) => answered(api.POST("/api/cameras", { body })));

export const useChangeCamera = (cameraId: string) =>
  useCameraChange((body: CameraChange) =>
    answered(api.PATCH("/api/cameras/{camera_id}", { ...path(cameraId), body })),
  );

export const useRemoveCamera = () =>
  useCameraChange((cameraId: string) => answered(api.DELETE("/api/cameras/{camera_id}", path(cameraId))));

export interface ImportedFile {
  format: "csv" | "frigate";
  text: string;
  site: string | null;
}

/** What adding a file's cameras would do; nothing is added. */
export const useCheckImport = () =>
  useMutation({
    mutationFn: (file: ImportedFile): Promise<ImportAnswer> => sendImport(file, { dry_run: true, skip_bad: false }),
  });

/** Adds them; where something is wrong only the good ones, if that was asked for. */
export const useImport = () =>
  useCameraChange(({ file, skipBad }: { file: ImportedFile; skipBad: boolean }) =>
    sendImport(file, { dry_run: false, skip_bad: skipBad }),
  );

const sendImport = (file: ImportedFile, how: { dry_run: boolean; skip_bad: boolean }): Promise<ImportAnswer> =>
  answered(api.POST("/api/imports", { body: { ...file, ...how, zones: false } }));

// --- errands about cameras ---

export const askLook = (cameraId: string): Promise<Errand> =>
  answered(api.POST("/api/cameras/{camera_id}/look", path(cameraId)));

export const askExplain = (cameraId: string): Promise<Errand> =>
  answered(api.POST("/api/cameras/{camera_id}/explain", path(cameraId)));

export interface Login {
  user: string;
  password: string;
}

const given = ({ user, password }: Login) => (user || password ? { user, password } : {});

/** The server's own usual values; the generated types want them said. */
const USUAL_PROBE = { measure_sec: 4, transport: "tcp" } as const;
const USUAL_DISCOVERY = { wait_sec: 4, hosts: [] };
const at = (site: string | null) => (site ? { site } : {});

export const askProbe = (url: string, login: Login, site: string | null): Promise<Errand> =>
  answered(api.POST("/api/probes", { body: { ...USUAL_PROBE, source: { url, ...given(login) }, ...at(site) } }));

export const askDiscovery = (site: string | null): Promise<Errand> =>
  answered(api.POST("/api/discovery", { body: { ...USUAL_DISCOVERY, ...at(site) } }));

export const askStreams = (url: string, login: Login, site: string | null): Promise<Errand> =>
  answered(
    api.POST("/api/discovery", { body: { ...USUAL_DISCOVERY, device: { url, ...given(login) }, ...at(site) } }),
  );
