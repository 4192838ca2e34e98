import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Player, PlayerView } from "./player";
import type { StreamFigures } from "./stream";

const EVERY_MS = 1000;

/** The stream's figures, new every second while somebody looks at them. */
export function useFigures(player: Player | null): StreamFigures | null {
  const [figures, setFigures] = useState<StreamFigures | null>(null);
  useEffect(() => {
    if (!player) return;
    const read = () => setFigures(player.figures());
    read();
    const timer = setInterval(read, EVERY_MS);
    return () => clearInterval(timer);
  }, [player]);
  return figures;
}

export function FiguresPanel({ player, view }: { player: Player; view: PlayerView }) {
  const { t } = useTranslation();
  const figures = useFigures(player);
  const { facts, viewing } = view;
  const seconds = (value: number) => t("live.figures.seconds", { value: value.toFixed(2) });
  const rows: [string, string | null][] = [
    [t("live.figures.way"), t(`live.figures.${viewing.transport}`)],
    [t("live.figures.size"), figures && figures.width > 0 ? `${figures.width} × ${figures.height}` : null],
    [
      t("live.figures.fps"),
      figures?.fps == null ? null : t("live.figures.framesPerSec", { value: figures.fps.toFixed(1) }),
    ],
    [
      t("live.figures.rate"),
      figures?.kbps == null ? null : t("live.figures.kbps", { value: Math.round(figures.kbps) }),
    ],
    [t("live.figures.lag"), figures ? seconds(figures.lagSec) : null],
    [t("live.figures.server"), facts.behindMs === undefined ? null : seconds(facts.behindMs / 1000)],
    [t("live.figures.buffered"), figures ? seconds(figures.bufferedSec) : null],
    [t("live.figures.dropped"), figures ? String(figures.droppedFrames) : null],
    [t("live.figures.stalls"), figures ? String(figures.stalls) : null],
    [t("live.figures.codec"), facts.mime ? (/codecs="([^"]*)"/.exec(facts.mime)?.[1] ?? facts.mime) : null],
    [t("live.figures.viewers"), facts.viewers === undefined ? null : String(facts.viewers)],
  ];
  return (
    <section
      aria-label={t("live.figures.title")}
      className="absolute top-2 left-2 max-w-[calc(100%-1rem)] rounded-md bg-black/80 px-3 py-2 text-white text-xs"
    >
      <dl className="grid grid-cols-[auto_auto] gap-x-3 gap-y-0.5 tabular-nums">
        {rows.map(
          ([name, value]) =>
            value !== null && (
              <div key={name} className="contents">
                <dt className="text-white/80">{name}</dt>
                <dd className="font-mono">{value}</dd>
              </div>
            ),
        )}
      </dl>
    </section>
  );
}
