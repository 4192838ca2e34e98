import { CircleAlert, Clock, LoaderCircle, Play, TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/ui/button";
import { durationText } from "@/display/times";
import type { Player, PlayerView } from "./player";
import { OVER_CAPACITY, type Refusal, SYSTEM_OVERLOAD, type Trouble, type Viewing } from "./viewing";

/** What the trouble is, in words: the server's own where it has some. */
export function useTroubleText(): (trouble: Trouble) => string {
  const { t, i18n } = useTranslation();
  return ({ code, label }) => {
    if (label) return i18n.language === "en" ? label.label_en : label.label_ja;
    return t(
      i18n.exists(`live.trouble.${code}`)
        ? (`live.trouble.${code}` as "live.trouble.stalled")
        : "live.trouble.stalled",
    );
  };
}

export function useRefusalText(): (refusal: Refusal) => string {
  const { t, i18n } = useTranslation();
  return ({ code, message }) => {
    if (i18n.exists(`live.refusal.${code}`)) return t(`live.refusal.${code}` as "live.refusal.other");
    return message || t("live.refusal.other");
  };
}

/** One sentence about how it stands, for those who can't see it and for the bar at the bottom of the picture. */
export function useStandingText(): (viewing: Viewing) => string {
  const { t } = useTranslation();
  const troubleText = useTroubleText();
  const refusalText = useRefusalText();
  return (viewing) => {
    const { phase, trouble, refusal, loss } = viewing;
    if (trouble && (phase === "connecting" || phase === "degraded" || phase === "warning"))
      return troubleText(trouble);
    if (refusal) return refusalText(refusal);
    if (loss) return t(`live.loss.${loss}`);
    return t(`live.phase.${phase}`);
  };
}

/** At the lower edge of the picture while it is on its way, interrupted or nearly over. */
export function StandingBar({ view }: { view: PlayerView }) {
  const { t } = useTranslation();
  const standing = useStandingText();
  const { viewing, secondsLeft } = view;
  const { phase, trouble } = viewing;
  const isWaiting = phase === "requesting" || phase === "connecting";
  const isTroubled = phase === "degraded" || (phase === "warning" && trouble !== null);
  if (!isWaiting && !isTroubled && phase !== "warning") return null;
  const Icon = isTroubled ? TriangleAlert : isWaiting ? LoaderCircle : Clock;
  return (
    <div className="absolute inset-x-0 bottom-0 flex items-center gap-2 bg-black/75 px-3 py-2 text-sm text-white">
      <Icon
        aria-hidden="true"
        className={isWaiting ? "size-4 shrink-0 animate-spin motion-reduce:animate-none" : "size-4 shrink-0"}
      />
      <span>{standing(viewing)}</span>
      {phase === "warning" && secondsLeft !== null && (
        <span className="ml-auto whitespace-nowrap tabular-nums">
          {t("live.left", { time: durationText(secondsLeft * 1000) })}
        </span>
      )}
    </div>
  );
}

interface PanelProps {
  title: string;
  lead?: string | undefined;
  Icon: typeof Clock;
  children: ReactNode;
}

/** Over the picture when it ended: says why and what can be done. Whoever uses keys lands on the first button. */
function Panel({ title, lead, Icon, children }: PanelProps) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    ref.current?.querySelector<HTMLElement>("button:not(:disabled)")?.focus();
  }, []);
  return (
    <div className="absolute inset-0 flex overflow-auto p-3">
      <div
        ref={ref}
        role="alertdialog"
        aria-labelledby="live-panel-title"
        aria-describedby={lead ? "live-panel-lead" : undefined}
        className="m-auto grid max-w-md justify-items-center gap-2 rounded-xl border bg-surface px-5 py-4 text-center text-text shadow-lg sm:gap-3 sm:px-6 sm:py-5"
      >
        <Icon aria-hidden="true" className="size-7 text-severity-2" />
        <h3 id="live-panel-title" className="text-balance font-semibold">
          {title}
        </h3>
        {lead && (
          <p id="live-panel-lead" className="text-balance text-quiet text-sm">
            {lead}
          </p>
        )}
        {children}
      </div>
    </div>
  );
}

interface EndedProps {
  view: PlayerView;
  player: Player;
  onClose: () => void;
}

/** What is said and offered when there is no live picture and none is on its way. */
export function EndedPanel({ view, player, onClose }: EndedProps) {
  const { t } = useTranslation();
  const standing = useStandingText();
  const { viewing } = view;
  const close = (
    <Button variant="outline" onClick={onClose}>
      {t("live.close")}
    </Button>
  );
  if (viewing.phase === "expired") {
    return (
      <Panel key="expired" Icon={Clock} title={t("live.ttl.title")} lead={t("live.ttl.lead")}>
        <Buttons>
          <Button onClick={() => player.again()}>{t("live.again")}</Button>
          {close}
        </Buttons>
      </Panel>
    );
  }
  if (viewing.phase === "lost") {
    return (
      <Panel key="lost" Icon={CircleAlert} title={t("live.phase.lost")} lead={standing(viewing)}>
        <RetryIn view={view} />
        <Buttons>
          {viewing.loss !== "session" && <Button onClick={() => player.again()}>{t("live.again")}</Button>}
          {close}
        </Buttons>
      </Panel>
    );
  }
  if (viewing.phase === "rejected" && viewing.refusal) {
    return (
      <Panel key={viewing.refusal.code} Icon={CircleAlert} title={t("live.phase.rejected")} lead={standing(viewing)}>
        <RefusalFacts refusal={viewing.refusal} />
        <RetryIn view={view} />
        <Buttons>
          <RefusalActions viewing={viewing} player={player} />
          {close}
        </Buttons>
      </Panel>
    );
  }
  return null;
}

const Buttons = ({ children }: { children: ReactNode }) => (
  <div className="flex flex-wrap justify-center gap-2">{children}</div>
);

function RefusalFacts({ refusal }: { refusal: Refusal }) {
  const { t } = useTranslation();
  const { units, openCamera, code } = refusal;
  return (
    <>
      {units && <p className="text-sm tabular-nums">{t("live.units", units)}</p>}
      {openCamera && <p className="text-sm">{t("live.openElsewhere", { name: openCamera.name })}</p>}
      {code === SYSTEM_OVERLOAD && <p className="text-quiet text-sm">{t("live.waitHealthy")}</p>}
    </>
  );
}

function RefusalActions({ viewing, player }: { viewing: Viewing; player: Player }) {
  const { t } = useTranslation();
  const { refusal, wanted, mayRetry, retryAtMs } = viewing;
  if (refusal?.openCamera) return <Button onClick={() => player.takeOver()}>{t("live.takeOver")}</Button>;
  return (
    <>
      {refusal?.code === OVER_CAPACITY && wanted === "main" && (
        <Button onClick={() => player.again("sub")}>{t("live.trySub")}</Button>
      )}
      <Button disabled={!mayRetry} variant={wanted === "main" ? "outline" : "primary"} onClick={() => player.again()}>
        {t(retryAtMs === null ? "live.again" : "live.tryNow")}
      </Button>
    </>
  );
}

function RetryIn({ view }: { view: PlayerView }) {
  const { t } = useTranslation();
  if (view.retryInSec === null) return null;
  return (
    <p aria-live="off" className="text-quiet text-sm tabular-nums">
      {t("live.retryIn", { count: view.retryInSec })}
    </p>
  );
}

/** Where the browser plays nothing before somebody pressed. */
export function PlayButton({ onPlay }: { onPlay: () => void }) {
  const { t } = useTranslation();
  return (
    <div className="absolute inset-0 grid place-items-center">
      <Button onClick={onPlay} className="h-14 px-6 text-base">
        <Play aria-hidden="true" />
        {t("live.play")}
      </Button>
    </div>
  );
}
