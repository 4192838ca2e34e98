// The routes of live view, typed.

import { api } from "@/api/client";

export interface LeaseAsked {
  camera_id: string;
  quality: "sub" | "main";
  purpose: "modal" | "suggest";
  plays: ("h264" | "h265")[];
}

export interface LeaseGiven {
  lease_id: string;
  camera_id: string;
  allowed_quality: "sub" | "main";
  expires_at: string;
  stream_url: string;
  hls_url: string;
  snapshot_url: string;
  remaining_sec: number;
  ttl_sec: number;
  heartbeat_interval_sec: number;
  heartbeat_grace_sec: number;
  units: number;
  transcoded: boolean;
  note: string;
}

export interface SystemStatus {
  healthy: boolean;
  cpu_percent: number | null;
  memory_percent: number | null;
  active_modals: number;
  modal_budget_remaining: number;
  suggest_active: boolean;
}

export interface Suggestion {
  camera_id: string;
  camera_name: string;
  site: string;
  score: number;
  reason_code: string;
  reason: string;
  manual: boolean;
  event_uuid: string | null;
  since: number;
  until: number;
}

export interface Suggested {
  suggestion: Suggestion | null;
}

type Answered<T> = Promise<{ data?: T; error?: unknown; response: Response }>;
interface Options {
  signal?: AbortSignal;
  keepalive?: boolean;
}
type OfLease = Options & { params: { path: { lease_id: string } } };

/** The typed client, for routes that its generated types do not know yet. */
interface LiveRoutes {
  POST(path: "/api/modal/lease", options: Options & { body: LeaseAsked }): Answered<LeaseGiven>;
  POST(
    path: "/api/modal/lease/{lease_id}/heartbeat",
    options: OfLease,
  ): Answered<{ ok: boolean; remaining_sec: number }>;
  POST(
    path: "/api/suggest/manual",
    options: Options & { body: { camera_id: string; duration_sec: number } },
  ): Answered<Suggested>;
  POST(
    path: "/api/cameras/{camera_id}/recent-clip",
    options: Options & { params: { path: { camera_id: string } }; body: { sec: number }; parseAs: "blob" },
  ): Answered<Blob>;
  DELETE(path: "/api/modal/lease/{lease_id}", options: OfLease): Answered<{ ok: boolean }>;
  DELETE(path: "/api/suggest"): Answered<undefined>;
  GET(path: "/api/system/status"): Answered<SystemStatus>;
  GET(path: "/api/suggest"): Answered<Suggested>;
}

export const liveApi = api as unknown as LiveRoutes;
