import { type KeyboardEvent, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { Frame } from "@/api/types";
import { clockTime } from "@/display/times";
import { useSeen } from "@/hooks/use-seen";
import { FrameThumbnail } from "./frame-thumbnail";
import { severityEdge } from "./severity-badge";
import { cn } from "./ui/class-names";

interface Props {
  frames: readonly Frame[];
  chosen: string | undefined;
  onChoose: (frameUuid: string) => void;
  hasMore: boolean;
  onMore: () => void;
}

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };

/** The pictures of an event in the order they were taken. Arrow keys go from one to the next. */
export function FrameStrip({ frames, chosen, onChoose, hasMore, onMore }: Props) {
  const { t, i18n } = useTranslation();
  const end = useSeen<HTMLLIElement>(onMore, hasMore);
  const current = useRef<HTMLButtonElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the choice is what moves the strip
  useEffect(() => void current.current?.scrollIntoView?.({ block: "nearest", inline: "center" }), [chosen]);

  function step(event: KeyboardEvent): void {
    const by = STEPS[event.key];
    const next = frames[frames.findIndex((frame) => frame.frame_uuid === chosen) + (by ?? 0)];
    if (by === undefined || !next) return;
    event.preventDefault();
    onChoose(next.frame_uuid);
    const buttons = event.currentTarget.querySelectorAll<HTMLElement>("button");
    buttons[frames.indexOf(next)]?.focus();
  }

  return (
    <ul aria-label={t("event.strip")} onKeyDown={step} className="flex gap-2 overflow-x-auto p-1">
      {frames.map((frame) => (
        <li key={frame.frame_uuid} className="shrink-0">
          <button
            ref={frame.frame_uuid === chosen ? current : null}
            type="button"
            aria-current={frame.frame_uuid === chosen}
            tabIndex={frame.frame_uuid === chosen ? 0 : -1}
            onClick={() => onChoose(frame.frame_uuid)}
            className={cn(
              "block w-32 overflow-hidden rounded-md border border-l-4 bg-surface text-left",
              severityEdge(frame.severity),
              frame.frame_uuid === chosen && "ring-2 ring-accent",
            )}
          >
            <FrameThumbnail
              frame={frame}
              alt={t("event.frameAt", { time: clockTime(frame.captured_at, i18n.language) })}
            />
            <span aria-hidden="true" className="block px-2 py-1 text-quiet text-xs tabular-nums">
              {clockTime(frame.captured_at, i18n.language)}
            </span>
          </button>
        </li>
      ))}
      {hasMore && <li ref={end} aria-hidden="true" className="w-32 shrink-0 animate-pulse rounded-md bg-raised" />}
    </ul>
  );
}
