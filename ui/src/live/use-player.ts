import { type RefObject, useEffect, useState, useSyncExternalStore } from "react";
import { type Desk, type Purpose, ServerDesk } from "./desk";
import { Player, type PlayerView } from "./player";
import type { Quality } from "./viewing";

// One for each purpose and for the whole page: a camera that is closed and the next that is opened must meet there.
const desks: Record<Purpose, Desk> = { modal: new ServerDesk(), suggest: new ServerDesk() };

const NOTHING_YET: PlayerView | null = null;
const clockMs = () => performance.now();

interface Wanted {
  cameraId: string;
  purpose: Purpose;
  quality: Quality;
}

/** A player on a video element, for as long as the component is there. */
export function usePlayer(
  video: RefObject<HTMLVideoElement | null>,
  { cameraId, purpose, quality }: Wanted,
  onEnding: () => void,
): { player: Player | null; view: PlayerView | null } {
  const [player, setPlayer] = useState<Player | null>(null);
  useEffect(() => {
    const element = video.current;
    if (!element) return;
    const made = new Player({ cameraId, purpose, quality, video: element, desk: desks[purpose], clockMs, onEnding });
    setPlayer(made);
    return () => {
      made.close();
      setPlayer(null);
    };
  }, [cameraId, purpose, quality, video, onEnding]);
  const view = useSyncExternalStore(player?.subscribe ?? neverChanges, player?.read ?? nothing);
  return { player, view };
}

const neverChanges = () => () => undefined;
const nothing = () => NOTHING_YET;
