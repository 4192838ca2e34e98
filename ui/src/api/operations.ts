// What keeps the house running: workers, leases, the queue of analysis, and how the installation is.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useChanging } from "./changing";
import { answered, api } from "./client";
import { statusQuery } from "./queries";
import type { operations } from "./schema";
import type { FlagAsked, JobReason } from "./types";

/** The feed tells who takes and leaves cameras, but not that a lease was renewed or a worker was heard of. */
const RENEWED_MS = 15_000;
/** The feed tells of looks that come and are analyzed, but not of jobs that wait longer, are given up or tried again. */
const SELDOM_MS = 30_000;

export function useWorkers() {
  return useInfiniteQuery({
    queryKey: ["workers", "list"],
    queryFn: ({ pageParam }) =>
      answered(api.GET("/api/workers", { params: { query: { after: pageParam, limit: 100 } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
    refetchInterval: RENEWED_MS,
  });
}

/** Those that a camera there can be given to; nobody chooses among more. */
export const useWorkersAt = (site: string) =>
  useQuery({
    queryKey: ["workers", "list", site],
    queryFn: () => answered(api.GET("/api/workers", { params: { query: { site: [site], limit: 500 } } })),
    refetchInterval: RENEWED_MS,
  });

export function useLeases() {
  return useInfiniteQuery({
    queryKey: ["leases"],
    queryFn: ({ pageParam }) =>
      answered(api.GET("/api/leases", { params: { query: { after: pageParam, limit: 200 } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
    refetchInterval: RENEWED_MS,
  });
}

export const useQuota = () =>
  useQuery({ queryKey: ["workers", "quota"], queryFn: () => answered(api.GET("/api/quota")) });

const worker = (worker_id: string) => ({ params: { path: { worker_id } } });
const WORKERS = ["workers", "leases"];

export const useDrain = () =>
  useChanging(WORKERS, ({ workerId, draining }: { workerId: string; draining: boolean }) =>
    draining
      ? answered(api.POST("/api/workers/{worker_id}/drain", worker(workerId)))
      : answered(api.POST("/api/workers/{worker_id}/undrain", worker(workerId))),
  );

export const useRevoke = () =>
  useChanging(WORKERS, (workerId: string) => answered(api.POST("/api/workers/{worker_id}/revoke", worker(workerId))));

export const useEnrol = () =>
  useChanging(WORKERS, (body: { site?: string; worker_id?: string }) =>
    answered(api.POST("/api/workers/enrolments", { body })),
  );

export const useReclaim = () =>
  useChanging([...WORKERS, "cameras"], (body: { camera_id: string; force: boolean }) =>
    answered(api.POST("/api/leases/reclaim", { body })),
  );

export const useReassign = () =>
  useChanging([...WORKERS, "cameras", "camera"], ({ cameraId, workerId }: { cameraId: string; workerId: string }) =>
    answered(
      api.POST("/api/cameras/{camera_id}/reassign", {
        params: { path: { camera_id: cameraId } },
        body: { worker_id: workerId },
      }),
    ),
  );

/** Only that worker takes the camera; null lets any. */
export const usePin = () =>
  useChanging(
    [...WORKERS, "cameras", "camera"],
    ({ cameraId, workerId }: { cameraId: string; workerId: string | null }) => {
      const camera = { params: { path: { camera_id: cameraId } } };
      return workerId === null
        ? answered(api.DELETE("/api/cameras/{camera_id}/pin", camera))
        : answered(api.POST("/api/cameras/{camera_id}/pin", { ...camera, body: { worker_id: workerId } }));
    },
  );

// --- how cameras are given to workers ---

export const useSetQuota = () =>
  useChanging(["workers"], (cameras_running_max: number | null) =>
    answered(api.POST("/api/quota", { body: { cameras_running_max } })),
  );

export const useFlags = () => useQuery({ queryKey: ["flags"], queryFn: () => answered(api.GET("/api/flags")) });

export const useSetFlag = () =>
  useChanging(["flags"], (body: FlagAsked) => answered(api.POST("/api/flags", { body })));

// --- the queue ---

export type JobFilter = NonNullable<operations["list_jobs"]["parameters"]["query"]>;

export function useJobs(filter: JobFilter) {
  return useInfiniteQuery({
    queryKey: ["jobs", "list", filter],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/jobs", {
          params: { query: { ...filter, limit: 50, ...(pageParam ? { before: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
    refetchInterval: SELDOM_MS,
  });
}

export const useJobCounts = () =>
  useQuery({
    queryKey: ["jobs", "counts"],
    queryFn: () => answered(api.GET("/api/jobs/counts")),
    refetchInterval: SELDOM_MS,
  });

export const useJobsStatus = () =>
  useQuery({
    queryKey: ["jobs", "status"],
    queryFn: () => answered(api.GET("/api/jobs/status")),
    refetchInterval: SELDOM_MS,
  });

export const useRequeueJob = () =>
  useChanging(["jobs"], (frame_uuid: string) =>
    answered(api.POST("/api/jobs/{frame_uuid}/requeue", { params: { path: { frame_uuid } } })),
  );

export const useRequeueJobs = () =>
  useChanging(
    ["jobs"],
    (asked: { statuses: ("dead" | "skipped")[]; reason: JobReason | null; camera_ids: string[] }) =>
      answered(api.POST("/api/jobs/requeue", { body: { ...asked, limit: 1000 } })),
  );

// --- the installation ---

export const useSystemStatus = () =>
  useQuery({
    ...statusQuery,
    // The feed tells of what people should see at once; this is for the percentages, while the page is open.
    refetchInterval: SELDOM_MS,
  });

export const useRetention = () =>
  useQuery({
    queryKey: ["retention"],
    queryFn: () => answered(api.GET("/api/retention")),
    refetchInterval: SELDOM_MS,
  });

export const useStatisticsByHour = () =>
  useQuery({
    queryKey: ["statistics"],
    queryFn: () => answered(api.GET("/api/statistics", { params: { query: { by: "hour" } } })),
    refetchInterval: SELDOM_MS * 4,
  });
