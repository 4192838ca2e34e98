import {
  Activity,
  Bookmark,
  BriefcaseBusiness,
  Camera as CameraIcon,
  History,
  Info,
  Maximize,
  Minimize,
  Volume2,
  VolumeX,
  X,
} from "lucide-react";
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useSession } from "@/api/queries";
import type { CaseItemAsked, Frame } from "@/api/types";
import { CaseDialog } from "@/components/case-dialog";
import { useProblemText } from "@/components/problem-notice";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { cn } from "@/components/ui/class-names";
import { durationText } from "@/display/times";
import { useBookmarking } from "@/hooks/use-bookmark";
import { FiguresPanel, useFigures } from "./figures";
import { LookStrip, RecordedLook } from "./look-strip";
import { useRecentLooks } from "./looks";
import { EndedPanel, PlayButton, StandingBar, useStandingText } from "./notices";
import { fileName, save, takeSnapshot } from "./pictures";
import type { Player, PlayerView } from "./player";
import { useCamera } from "./queries";
import { RecentClip } from "./recent-clip";
import { keepLastPicture, Stage } from "./stage";
import { codecName } from "./stream";
import { usePlayer } from "./use-player";
import { isLive, type Quality } from "./viewing";

const NO_LOOKS: readonly Frame[] = [];

interface Props {
  cameraId: string;
  onClose: () => void;
}

/** Live view of one camera over whatever page is shown. */
export default function LiveModal({ cameraId, onClose }: Props) {
  const { t } = useTranslation();
  const dialog = useRef<HTMLDialogElement>(null);
  const video = useRef<HTMLVideoElement>(null);
  const last = useRef<HTMLCanvasElement>(null);
  const stage = useRef<HTMLDivElement>(null);
  const [hasLast, setHasLast] = useState(false);
  const [isMuted, setMuted] = useState(true);
  const [hasFigures, setFigures] = useState(false);
  const [isRecent, setRecent] = useState(false);
  const [said, setSaid] = useState("");
  const [look, setLook] = useState<Frame | null>(null);
  const [item, setItem] = useState<CaseItemAsked | null>(null);
  const looks = useRecentLooks(cameraId).data ?? NO_LOOKS;
  const mayInvestigate = useSession().data?.permissions.includes("investigate") ?? false;
  const problemText = useProblemText();
  const onEnding = useCallback(() => {
    if (keepLastPicture(video.current, last.current)) setHasLast(true);
  }, []);
  const { player, view } = usePlayer(video, { cameraId, purpose: "modal", quality: "sub" }, onEnding);
  const isPlaying = view !== null && isLive(view.viewing) && view.viewing.seen;
  const hasEnded = view !== null && ["expired", "lost", "rejected"].includes(view.viewing.phase);
  const { data: camera } = useCamera(cameraId, !isPlaying);
  const name = camera?.name ?? cameraId;
  useOpenDialog(dialog);
  const full = useFullScreen(stage);

  const snapshot = useCallback(async () => {
    try {
      save(await takeSnapshot(player?.snapshotUrl ?? null, video.current), fileName(cameraId, "jpg"));
      setSaid(t("live.snapshotSaved"));
    } catch {
      setSaid(t("live.snapshotFailed"));
    }
  }, [cameraId, player, t]);

  const toggleSound = () => {
    player?.hear(isMuted);
    setMuted(!isMuted);
  };

  // What is live has no name to keep it by: its newest look has.
  const kept = look ?? looks.at(-1);
  const bookmark = useBookmarking();
  const mark =
    kept && bookmark
      ? () =>
          void bookmark({ kind: "frame", uuid: kept.frame_uuid }).then(
            () => setSaid(t("bookmark.look")),
            (error: unknown) => setSaid(problemText(error)),
          )
      : null;
  const keep = kept && mayInvestigate ? () => setItem({ kind: "frame", uuid: kept.frame_uuid }) : null;

  const actions: Record<string, () => void> = {
    ...(mark ? { b: mark } : {}),
    ...(keep ? { c: keep } : {}),
    f: full.toggle,
    i: () => setFigures((shown) => !shown),
    l: () => setRecent((shown) => !shown),
    ...(isPlaying ? { s: () => void snapshot() } : {}),
    ...(view?.facts.hasAudio ? { m: toggleSound } : {}),
  };

  return (
    <>
      <dialog
        ref={dialog}
        aria-labelledby="live-title"
        onCancel={(event) => {
          event.preventDefault();
          onClose();
        }}
        onKeyDown={(event) => pressed(event, actions)}
        className="m-auto h-dvh max-h-dvh w-full max-w-full overflow-auto bg-surface text-text backdrop:bg-black/70 sm:h-fit sm:w-[min(72rem,94vw)] sm:rounded-xl sm:border"
      >
        <header className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b py-2 pr-2 pl-4">
          <h2 id="live-title" className="min-w-0 truncate font-semibold">
            {t("live.title", { name })}
          </h2>
          {player && view && <Way player={player} view={view} />}
          <div className="ml-auto flex items-center gap-3">
            {view && <TimeLeft view={view} />}
            <Button variant="ghost" size="icon" aria-label={t("live.close")} onClick={onClose}>
              <X aria-hidden="true" />
            </Button>
          </div>
        </header>
        <div ref={stage} className="grid place-items-center bg-black">
          <Stage
            camera={camera}
            name={name}
            view={view}
            video={video}
            last={last}
            hasLast={hasLast}
            isMuted={isMuted}
            className={cn(
              full.isFull ? "h-dvh w-dvw" : "max-h-[68dvh] w-full",
              // What is said then needs more room than a telephone gives to a picture.
              hasEnded && "max-sm:min-h-80",
            )}
          >
            {hasFigures && player && view && <FiguresPanel player={player} view={view} />}
            {view && <StandingBar view={view} />}
            {view?.facts.needsPlay && <PlayButton onPlay={() => void video.current?.play()} />}
            {look && <RecordedLook look={look} name={name} onBack={() => setLook(null)} />}
            {isRecent && <RecentClip cameraId={cameraId} onBack={() => setRecent(false)} />}
            {player && view && !isRecent && !look && <EndedPanel view={view} player={player} onClose={onClose} />}
          </Stage>
        </div>
        <LookStrip looks={looks} chosen={look} onChoose={setLook} />
        <Notes view={view} said={said} />
        <footer className="flex flex-wrap items-center gap-2 px-4 py-3">
          {player && view && <QualityChoice player={player} view={view} />}
          <Tool label={t("live.snapshot")} onClick={() => void snapshot()} disabled={!isPlaying}>
            <CameraIcon aria-hidden="true" />
          </Tool>
          <Tool label={t("live.recent")} onClick={() => setRecent(!isRecent)} isPressed={isRecent}>
            <History aria-hidden="true" />
          </Tool>
          {mark && (
            <Tool label={t("bookmark.add")} onClick={mark}>
              <Bookmark aria-hidden="true" />
            </Tool>
          )}
          {keep && (
            <Tool label={t("live.keep")} onClick={keep}>
              <BriefcaseBusiness aria-hidden="true" />
            </Tool>
          )}
          {view?.facts.hasAudio && (
            <Tool label={t(isMuted ? "live.unmute" : "live.mute")} onClick={toggleSound}>
              {isMuted ? <VolumeX aria-hidden="true" /> : <Volume2 aria-hidden="true" />}
            </Tool>
          )}
          <Tool label={t("live.stats")} onClick={() => setFigures(!hasFigures)} isPressed={hasFigures}>
            <Activity aria-hidden="true" />
          </Tool>
          <Tool label={t(full.isFull ? "live.exitFull" : "live.full")} onClick={full.toggle}>
            {full.isFull ? <Minimize aria-hidden="true" /> : <Maximize aria-hidden="true" />}
          </Tool>
          <Link
            to={`/events?camera=${encodeURIComponent(cameraId)}`}
            className="ml-auto rounded text-accent text-sm underline-offset-4 hover:underline"
          >
            {t("live.events")}
          </Link>
          <p className="hidden w-full text-quiet text-xs sm:block">{t("live.keys")}</p>
        </footer>
      </dialog>
      <CaseDialog item={item} onClose={() => setItem(null)} />
    </>
  );
}

/** The browser's own dialog: what is behind can't be reached, Esc closes, and the focus goes back where it was. */
function useOpenDialog(ref: { current: HTMLDialogElement | null }): void {
  useLayoutEffect(() => {
    const dialog = ref.current;
    const root = document.documentElement;
    dialog?.showModal();
    root.classList.add("overflow-hidden");
    return () => {
      root.classList.remove("overflow-hidden");
      dialog?.close();
    };
  }, [ref]);
}

function useFullScreen(ref: { current: HTMLElement | null }) {
  const [isFull, setFull] = useState(false);
  useEffect(() => {
    const look = () => setFull(document.fullscreenElement !== null);
    document.addEventListener("fullscreenchange", look);
    return () => document.removeEventListener("fullscreenchange", look);
  }, []);
  const toggle = useCallback(() => {
    // Where it is not allowed nothing happens, which is what the browser says too.
    const done = document.fullscreenElement ? document.exitFullscreen() : ref.current?.requestFullscreen?.();
    void done?.catch(() => undefined);
  }, [ref]);
  return { isFull, toggle };
}

function pressed(event: KeyboardEvent, actions: Record<string, () => void>): void {
  const isTyping = event.target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (isTyping || event.nativeEvent.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = actions[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
}

/** Quality, the way it comes, and how far behind it is. */
function Way({ player, view }: { player: Player; view: PlayerView }) {
  const { t } = useTranslation();
  const figures = useFigures(player);
  const { viewing } = view;
  if (!viewing.lease || !viewing.stream || !viewing.seen) return null;
  const lagSec = (figures?.lagSec ?? 0) + (view.facts.behindMs ?? 0) / 1000;
  return (
    <Badge className="text-quiet uppercase tabular-nums">
      {viewing.lease.quality} · {viewing.stream.transport}
      <span className="normal-case">{t("live.lag", { seconds: lagSec.toFixed(1) })}</span>
    </Badge>
  );
}

function TimeLeft({ view }: { view: PlayerView }) {
  const { t } = useTranslation();
  const { secondsLeft, viewing } = view;
  if (secondsLeft === null || !viewing.lease) return null;
  const isShort = viewing.phase === "warning";
  return (
    <div className="flex items-center gap-2 text-sm">
      <span
        className={cn("whitespace-nowrap tabular-nums", isShort ? "font-semibold text-severity-2" : "text-quiet")}
      >
        {t("live.left", { time: durationText(secondsLeft * 1000) })}
      </span>
      <span aria-hidden="true" className="hidden h-1.5 w-20 overflow-hidden rounded-full bg-raised sm:block">
        <span
          className={cn("block h-full", isShort ? "bg-severity-2" : "bg-accent")}
          style={{ width: `${Math.min(100, (secondsLeft * 100_000) / viewing.lease.lengthMs)}%` }}
        />
      </span>
    </div>
  );
}

function QualityChoice({ player, view }: { player: Player; view: PlayerView }) {
  const { t } = useTranslation();
  return (
    <label className="flex items-center gap-2 text-quiet text-sm">
      {t("live.quality")}
      <select
        value={view.viewing.wanted}
        onChange={(event) => player.again(event.target.value as Quality)}
        className="h-9 rounded-md border bg-ground px-2 pr-7 text-sm text-text"
      >
        <option value="sub">{t("live.sub")}</option>
        <option value="main">{t("live.main")}</option>
      </select>
    </label>
  );
}

interface ToolProps {
  label: string;
  onClick: () => void;
  disabled?: boolean;
  isPressed?: boolean;
  children: ReactNode;
}

function Tool({ label, onClick, disabled = false, isPressed, children }: ToolProps) {
  return (
    <Button
      variant="outline"
      size="small"
      disabled={disabled}
      aria-pressed={isPressed}
      onClick={onClick}
      className="h-9 aria-pressed:bg-accent-soft"
    >
      {children}
      {label}
    </Button>
  );
}

/** What is worth knowing about the picture, and what a screen reader says of it. */
function Notes({ view, said }: { view: PlayerView | null; said: string }) {
  const { t, i18n } = useTranslation();
  const standing = useStandingText();
  const notes = [view?.viewing.lease?.note, view?.facts.note].filter(
    (code) => code && i18n.exists(`live.note.${code}`),
  );
  const source = codecName(view?.facts.sourceCodec ?? "");
  const lease = view?.viewing.lease;
  // As the streamer says it is now; until then, what it was admitted for.
  const units = view?.facts.units ?? (lease?.note.startsWith("transcoded") ? lease.units : undefined);
  return (
    <div className="px-4">
      <output className="sr-only">{view && standing(view.viewing)}</output>
      {[...new Set(notes)].map((code) => (
        <p key={code} className="mt-2 flex items-center gap-2 text-quiet text-sm">
          <Info aria-hidden="true" className="size-4 shrink-0" />
          {t(`live.note.${code}` as "live.note.transcoded_codec")}
          {source && code?.startsWith("transcoded") && t("live.note.from", { codec: source })}
          {units !== undefined && code?.startsWith("transcoded") && t("live.note.cost", { count: units })}
        </p>
      ))}
      <output className="block text-sm">{said && <span className="mt-2 block">{said}</span>}</output>
    </div>
  );
}
