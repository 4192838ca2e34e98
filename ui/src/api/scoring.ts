// Sheets and events that a language model scores: what is brought, what it would cost, runs and what came of them.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useChanging } from "./changing";
import { answered, api } from "./client";
import type { ScoringEventsAsked, ScoringRun, ScoringSheet, ScoringSheetAsked, ScoringWishes } from "./types";

/** How often something that goes on is looked at. */
const STEP_MS = 2000;
const sheet = (sheet_uuid: string) => ({ params: { path: { sheet_uuid } } });
const run = (run_uuid: string) => ({ params: { path: { run_uuid } } });

export const isOver = (one: Pick<ScoringRun, "status">) => one.status === "completed" || one.status === "cancelled";
const isWaiting = (one: ScoringSheet) => one.state === "waiting" || one.state === "coming";

export const useScoringOffer = () =>
  useQuery({ queryKey: ["scoring", "offer"], queryFn: () => answered(api.GET("/api/scoring")) });

export function useScoringSheets() {
  return useInfiniteQuery({
    queryKey: ["scoring", "sheets"],
    queryFn: ({ pageParam }) =>
      answered(api.GET("/api/scoring/sheets", { params: { query: pageParam ? { before: pageParam } : {} } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
    refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.sheets.some(isWaiting)) ? STEP_MS : false),
  });
}

export const useScoringSheet = (uuid: string) =>
  useQuery({
    queryKey: ["scoring", "sheet", uuid],
    queryFn: () => answered(api.GET("/api/scoring/sheets/{sheet_uuid}", sheet(uuid))),
    refetchInterval: ({ state }) => (state.data && isWaiting(state.data) ? STEP_MS : false),
  });

export function useScoringRuns() {
  return useInfiniteQuery({
    queryKey: ["scoring", "runs"],
    queryFn: ({ pageParam }) =>
      answered(api.GET("/api/scoring/runs", { params: { query: pageParam ? { before: pageParam } : {} } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.runs.some((one) => one.status === "running")) ? STEP_MS : false,
  });
}

export const useScoringRun = (uuid: string) =>
  useQuery({
    queryKey: ["scoring", "run", uuid],
    queryFn: () => answered(api.GET("/api/scoring/runs/{run_uuid}", run(uuid))),
    // A file to download comes a moment after the end.
    refetchInterval: ({ state }) =>
      state.data &&
      (state.data.status === "running" || (state.data.brought?.kind === "file" && !state.data.has_result))
        ? STEP_MS
        : false,
  });

export function useScoringChunks(uuid: string, isRunning: boolean) {
  return useInfiniteQuery({
    queryKey: ["scoring", "chunks", uuid],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/scoring/runs/{run_uuid}/chunks", {
          params: { path: { run_uuid: uuid }, query: pageParam ? { after: pageParam } : {} },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
    refetchInterval: isRunning ? STEP_MS : false,
  });
}

export interface Upload {
  file: File;
  partBytes: number;
  asked: Omit<ScoringSheetAsked, "kind" | "name" | "size_bytes">;
  /** Told the share that has been sent. */
  onShare: (share: number) => void;
}

/** Announces a file and sends it piece by piece. */
export const useUploadSheet = () =>
  useChanging(["scoring"], async ({ file, partBytes, asked, onShare }: Upload) => {
    const body: ScoringSheetAsked = { ...asked, kind: "file", name: file.name, size_bytes: file.size };
    const made = await answered(api.POST("/api/scoring/sheets", { body }));
    for (let number = 0; number * partBytes < file.size; number += 1) {
      const piece = file.slice(number * partBytes, (number + 1) * partBytes);
      await answered(
        api.POST("/api/scoring/sheets/{sheet_uuid}/parts/{number}", {
          params: { path: { sheet_uuid: made.sheet_uuid, number } },
          // The description knows bytes as a string.
          body: piece as unknown as string,
          bodySerializer: (sent) => sent,
          headers: { "Content-Type": "application/octet-stream" },
        }),
      );
      onShare(Math.min(1, ((number + 1) * partBytes) / file.size));
    }
    return made;
  });

export const useAddSheet = () =>
  useChanging(["scoring"], (body: ScoringSheetAsked) => answered(api.POST("/api/scoring/sheets", { body })));

export const useAddEventSheet = () =>
  useChanging(["scoring"], (body: ScoringEventsAsked) => answered(api.POST("/api/scoring/event-sheets", { body })));

export const useChangeSheet = () =>
  useChanging(["scoring"], ({ uuid, body }: { uuid: string; body: ScoringWishes }) =>
    answered(api.PATCH("/api/scoring/sheets/{sheet_uuid}", { ...sheet(uuid), body })),
  );

export const useRemoveSheet = () =>
  useChanging(["scoring"], (uuid: string) => answered(api.DELETE("/api/scoring/sheets/{sheet_uuid}", sheet(uuid))));

export const useBeginRun = () =>
  useChanging(["scoring"], ({ uuid, budgetMicro }: { uuid: string; budgetMicro: number | null }) =>
    answered(
      api.POST("/api/scoring/sheets/{sheet_uuid}/runs", { ...sheet(uuid), body: { budget_micro: budgetMicro } }),
    ),
  );

export const useControlRun = () =>
  useChanging(["scoring"], ({ uuid, wanted }: { uuid: string; wanted: "run" | "pause" | "cancel" | "retry" }) =>
    answered(api.POST("/api/scoring/runs/{run_uuid}/control", { ...run(uuid), body: { wanted } })),
  );
