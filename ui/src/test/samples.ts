// Things the server answers with, for tests; each test says only what matters to it.

import type { Camera, Event, Frame, Incident, Session } from "@/api/types";

export const NOW = Date.UTC(2026, 1, 3, 4, 5, 6);

export function camera(given: Partial<Camera> = {}): Camera {
  return {
    camera_id: "entrance",
    name: "Entrance",
    site: "main",
    enabled: true,
    state: "ACTIVE",
    state_reason: "",
    polling_interval_sec: 5,
    source: null,
    created_at: NOW - 86_400_000,
    latest: look(),
    latest_picture: { frame_uuid: "f1", captured_at: NOW - 3000 },
    open_event: null,
    health: health(),
    sub: null,
    own: null,
    do_not_process: false,
    caps: null,
    last_probe_at: null,
    worker_id: "shop-1",
    stream_fault: null,
    unknown_hints: null,
    ...given,
  };
}

export function health(given: Partial<Camera["health"]> = {}): Camera["health"] {
  return { state: "up", since: NOW - 86_400_000, cause: null, issues: [], ...given };
}

export const WRONG_PASSWORD = {
  id: "unauthorized",
  label_ja: "ユーザー名またはパスワードが違います",
  label_en: "It refuses user name or password",
};

export const WATCHED_LIVE = {
  stream: "main",
  cause: {
    id: "watched_live",
    label_ja: "同じ機器の別のカメラがライブ視聴中のため、撮影を見合わせています",
    label_en: "Another camera of its device is being watched live; its looks wait",
  },
  message: "",
  at: NOW - 60_000,
  over_at: null,
};

export const COVERED = {
  id: "covered",
  label_ja: "カメラが覆われているか、真っ暗です",
  label_en: "Camera covered, or completely dark",
};

export function look(given: Partial<NonNullable<Camera["latest"]>> = {}): NonNullable<Camera["latest"]> {
  return {
    frame_uuid: "f1",
    captured_at: NOW - 3000,
    received_at: NOW - 2900,
    status: "ok",
    error_code: null,
    detected: false,
    primary_event: "none",
    severity: 0,
    has_picture: true,
    ...given,
  };
}

export function event(given: Partial<Event> = {}): Event {
  return {
    event_uuid: "e1",
    incident_uuid: null,
    camera_id: "entrance",
    camera_name: "Entrance",
    site: "main",
    state: "closed",
    primary_event: "human",
    start_at: NOW - 60_000,
    last_seen_at: NOW - 30_000,
    end_at: NOW - 30_000,
    severity_max: 1,
    confidence_max: 0.9,
    frame_count: 2,
    retention_class: "normal",
    best_frame_uuid: "f1",
    issue: null,
    cause: null,
    tags: [],
    ...given,
  };
}

export function incident(given: Partial<Incident> = {}): Incident {
  return {
    incident_uuid: "i1",
    camera_id: "entrance",
    camera_name: "Entrance",
    site: "main",
    start_at: NOW - 60_000,
    last_seen_at: NOW - 30_000,
    severity_max: 2,
    event_count: 3,
    last_event_uuid: "e1",
    best_frame_uuid: "f1",
    primary_event: "human",
    issue: null,
    is_ongoing: false,
    reviewed_at: null,
    reviewers: 0,
    ...given,
  };
}

export function frame(given: Partial<Frame> = {}): Frame {
  return {
    frame_uuid: "f1",
    event_uuid: "e1",
    camera_id: "entrance",
    camera_name: "Entrance",
    site: "main",
    captured_at: NOW - 60_000,
    received_at: NOW - 59_000,
    late: false,
    status: "ok",
    error_code: null,
    verdict: "analyze",
    diff_ratio: 0.1,
    luma_delta: 1,
    blur_score: 3,
    full_w: 1280,
    full_h: 720,
    infer_w: 640,
    infer_h: 360,
    letterbox: null,
    infer_hash64_hex: null,
    pictures: ["infer", "full"],
    analyzed: true,
    detected: true,
    primary_event: "human",
    unknown_flag: false,
    severity: 1,
    confidence: 0.9,
    count_hint: 1,
    retention_class: "normal",
    boxes: [{ x1: 0.25, y1: 0.25, x2: 0.5, y2: 0.75, label: "person", conf: 0.9 }],
    warnings: [],
    tags: [],
    ...given,
  };
}

export const SESSION: Session = {
  login: "first-admin",
  display_name: "First",
  role: "system_admin",
  language: "en",
  permissions: ["read"],
  features: [],
  may_share: false,
  csrf_token: "the-token",
  expires_at: NOW + 3_600_000,
};

/** Somebody with every permission there is. */
export const ADMIN: Session = {
  ...SESSION,
  may_share: true,
  permissions: [
    "read",
    "review",
    "investigate",
    "manage_cameras",
    "manage_workers",
    "manage_people",
    "manage_deliveries",
    "read_audit",
    "manage_system",
  ],
};

export const VOCABULARY = {
  schema_version: "1",
  primary_events: [
    { id: "none", label_ja: "検知なし", label_en: "Nothing detected" },
    { id: "human", label_ja: "人を検知", label_en: "Person detected" },
  ],
  tags: [],
};

/** What the server answers to whatever is around a page. */
export const AROUND = {
  "GET /api/session": ADMIN,
  "GET /api/vocabulary": VOCABULARY,
  "GET /api/cameras": { cameras: [camera()], next_after: null },
};
