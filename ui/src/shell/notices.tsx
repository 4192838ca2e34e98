// Short words about what was just done, with a way back where there is one.

import { CircleAlert, CircleCheck, X } from "lucide-react";
import { useEffect, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/ui/button";
import { cn } from "@/components/ui/class-names";

export interface Notice {
  text: string;
  failed?: boolean;
  undo?: () => void;
  /** Something else to do now. */
  action?: { text: string; run: () => void };
}

const SHOWN_MS = 8000;
const SHOWN_MAX = 3;

let notices: readonly (Notice & { id: number })[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function set(next: typeof notices): void {
  notices = next;
  for (const listener of listeners) listener();
}

export function tell(notice: Notice): void {
  set([...notices, { ...notice, id: nextId++ }].slice(-SHOWN_MAX));
}

export const dismissNotices = () => set([]);

const dismiss = (id: number) => set(notices.filter((one) => one.id !== id));

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Notices() {
  const { t } = useTranslation();
  const shown = useSyncExternalStore(subscribe, () => notices);
  return (
    <section
      aria-label={t("app.notices")}
      aria-live="polite"
      className="pointer-events-none fixed inset-x-3 bottom-20 z-50 mx-auto grid max-w-md gap-2 sm:bottom-4"
    >
      {shown.map((notice) => (
        <Shown key={notice.id} notice={notice} />
      ))}
    </section>
  );
}

function Shown({ notice }: { notice: Notice & { id: number } }) {
  const { t } = useTranslation();
  const { id, failed = false, text, undo } = notice;
  const action = notice.action ?? (undo && { text: t("action.undo"), run: undo });
  useEffect(() => {
    const timer = setTimeout(() => dismiss(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id]);
  const Icon = failed ? CircleAlert : CircleCheck;
  return (
    <div
      role={failed ? "alert" : "status"}
      className="pointer-events-auto flex items-center gap-3 rounded-lg border bg-surface py-2 pr-2 pl-4 text-sm shadow-lg"
    >
      <Icon aria-hidden="true" className={cn("size-5 shrink-0", failed ? "text-severity-3" : "text-live")} />
      <p className="min-w-0 flex-1">{text}</p>
      {action && (
        <Button
          variant="outline"
          size="small"
          onClick={() => {
            dismiss(id);
            action.run();
          }}
        >
          {action.text}
        </Button>
      )}
      <Button
        variant="ghost"
        size="icon"
        className="size-8"
        aria-label={t("action.close")}
        onClick={() => dismiss(id)}
      >
        <X aria-hidden="true" />
      </Button>
    </div>
  );
}
