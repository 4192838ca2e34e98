import { useCallback, useEffect, useRef, useState } from "react";
import type { Camera } from "@/api/types";
import { keepLastPicture, Stage } from "./stage";
import { usePlayer } from "./use-player";

interface Props {
  camera: Camera | undefined;
  cameraId: string;
  name: string;
  /** There is no room for a stream: stills are all there is. */
  onRefused: (isRefused: boolean) => void;
}

/** The suggested camera's pictures. The server ends them with the suggestion; until then they go on by themselves. */
export default function SuggestPlayer({ camera, cameraId, name, onRefused }: Props) {
  const video = useRef<HTMLVideoElement>(null);
  const last = useRef<HTMLCanvasElement>(null);
  const [hasLast, setHasLast] = useState(false);
  const onEnding = useCallback(() => {
    if (keepLastPicture(video.current, last.current)) setHasLast(true);
  }, []);
  const { player, view } = usePlayer(video, { cameraId, purpose: "suggest", quality: "sub" }, onEnding);
  const phase = view?.viewing.phase;
  useEffect(() => {
    if (phase === "expired") player?.again();
    onRefused(phase === "rejected");
  }, [phase, player, onRefused]);
  return <Stage camera={camera} name={name} view={view} video={video} last={last} hasLast={hasLast} isMuted />;
}
