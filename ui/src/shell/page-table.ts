// Every page that the navigation, the palette and the router know: where it is, what it is called, who may open it.

import {
  Activity,
  Bell,
  BriefcaseBusiness,
  Cctv,
  LayoutGrid,
  ListChecks,
  ListTodo,
  type LucideIcon,
  ScrollText,
  Search,
  Send,
  Server,
  Settings,
  Sheet,
} from "lucide-react";
import type { ComponentType } from "react";
import type { Session } from "@/api/types";
import { EventPage } from "@/pages/event";
import { EventsPage } from "@/pages/events";
import { WallPage } from "@/pages/wall";
import { later } from "./later";

export type NavName =
  | "wall"
  | "incidents"
  | "events"
  | "search"
  | "cases"
  | "scoring"
  | "cameras"
  | "workers"
  | "queue"
  | "deliveries"
  | "system"
  | "audit"
  | "settings";

export type NavGroup = "watch" | "find" | "operate" | "manage";
export const NAV_GROUPS: readonly NavGroup[] = ["watch", "find", "operate", "manage"];

export interface NavEntry {
  name: NavName;
  to: string;
  Icon: LucideIcon;
  group: NavGroup;
  /** The permission without which the server would answer nothing. */
  needs: string;
  /** What the installation must offer. */
  feature?: Session["features"][number];
  /** Among the few at the bottom of a telephone. */
  tab?: boolean;
}

export const NAV: readonly NavEntry[] = [
  { name: "wall", to: "/", Icon: LayoutGrid, group: "watch", needs: "read", tab: true },
  { name: "incidents", to: "/incidents", Icon: ListChecks, group: "watch", needs: "read", tab: true },
  { name: "events", to: "/events", Icon: Bell, group: "find", needs: "read", tab: true },
  { name: "search", to: "/search", Icon: Search, group: "find", needs: "read", tab: true },
  { name: "cases", to: "/cases", Icon: BriefcaseBusiness, group: "find", needs: "investigate" },
  { name: "scoring", to: "/scoring", Icon: Sheet, group: "find", needs: "manage_deliveries", feature: "scoring" },
  { name: "cameras", to: "/cameras", Icon: Cctv, group: "operate", needs: "read" },
  { name: "workers", to: "/workers", Icon: Server, group: "operate", needs: "manage_workers" },
  { name: "queue", to: "/queue", Icon: ListTodo, group: "operate", needs: "manage_cameras" },
  { name: "deliveries", to: "/deliveries", Icon: Send, group: "operate", needs: "manage_deliveries" },
  { name: "system", to: "/system", Icon: Activity, group: "operate", needs: "read" },
  { name: "audit", to: "/audit", Icon: ScrollText, group: "manage", needs: "read_audit" },
  { name: "settings", to: "/settings", Icon: Settings, group: "manage", needs: "read" },
];

export const mayOpen = (session: Session, entry: NavEntry) =>
  session.permissions.includes(entry.needs) && (!entry.feature || session.features.includes(entry.feature));

/** Pages come when they are opened, except for those that most people see first. */
export const ROUTES: readonly { path: string; Page: ComponentType }[] = [
  { path: "/", Page: WallPage },
  { path: "/events", Page: EventsPage },
  { path: "/events/:uuid", Page: EventPage },
  { path: "/incidents", Page: later(() => import("@/pages/incidents"), "IncidentsPage") },
  { path: "/search", Page: later(() => import("@/pages/search"), "SearchPage") },
  { path: "/cases", Page: later(() => import("@/pages/cases"), "CasesPage") },
  { path: "/cases/:uuid", Page: later(() => import("@/pages/case"), "CasePage") },
  { path: "/scoring", Page: later(() => import("@/pages/scoring"), "ScoringPage") },
  { path: "/scoring/sheets/:uuid", Page: later(() => import("@/pages/scoring-sheet"), "ScoringSheetPage") },
  { path: "/scoring/runs/:uuid", Page: later(() => import("@/pages/scoring-run"), "ScoringRunPage") },
  { path: "/cameras", Page: later(() => import("@/pages/cameras"), "CamerasPage") },
  { path: "/cameras/add", Page: later(() => import("@/pages/camera-add"), "CameraAddPage") },
  { path: "/cameras/import", Page: later(() => import("@/pages/camera-import"), "CameraImportPage") },
  { path: "/cameras/:id", Page: later(() => import("@/pages/camera"), "CameraPage") },
  { path: "/workers", Page: later(() => import("@/pages/workers"), "WorkersPage") },
  { path: "/queue", Page: later(() => import("@/pages/queue"), "QueuePage") },
  { path: "/deliveries", Page: later(() => import("@/pages/deliveries"), "DeliveriesPage") },
  { path: "/deliveries/:part", Page: later(() => import("@/pages/deliveries"), "DeliveriesPage") },
  { path: "/audit", Page: later(() => import("@/pages/audit"), "AuditPage") },
  { path: "/settings", Page: later(() => import("@/pages/settings"), "SettingsPage") },
  { path: "/settings/:part", Page: later(() => import("@/pages/settings"), "SettingsPage") },
  { path: "/system", Page: later(() => import("@/pages/system"), "SystemPage") },
  { path: "/cameras/:id/:part", Page: later(() => import("@/pages/camera"), "CameraPage") },
];
