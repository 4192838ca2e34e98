import { Plus, Trash2 } from "lucide-react";
import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import {
  at,
  cornersText,
  freshName,
  movedPoint,
  newRegion,
  type Point,
  REGION_KINDS,
  REGIONS_MAX,
  type Region,
  type RegionKind,
  splitSide,
  withoutPoint,
} from "@/display/regions";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/regions";
import { Button } from "./ui/button";
import { cn } from "./ui/class-names";
import { Field } from "./ui/field";

const useWords = addWords("regions", words);

const LOOKS: Record<RegionKind, { shape: string; dot: string; list: string }> = {
  ignore: { shape: "fill-sky-400/25 stroke-sky-300", dot: "bg-sky-300", list: "bg-sky-400" },
  privacy: { shape: "fill-black/80 stroke-zinc-200", dot: "bg-zinc-200", list: "bg-black" },
  zone: { shape: "fill-emerald-400/20 stroke-emerald-300", dot: "bg-emerald-300", list: "bg-emerald-400" },
};

const STEPS: Record<string, Point> = {
  ArrowLeft: [-0.01, 0],
  ArrowRight: [0.01, 0],
  ArrowUp: [0, -0.01],
  ArrowDown: [0, 0.01],
};

interface Props {
  /** The picture to draw on; null: an empty field of its shape. */
  picture: string | null;
  /** The same, smaller, where there is no large one. */
  small?: string | null;
  aspect?: number; // width over height
  regions: readonly Region[];
  onChange: (regions: Region[]) => void;
}

/** Masks and zones on the picture: corners are dragged, or moved with the arrow keys. */
export function RegionEditor({ picture, small = null, aspect, regions, onChange }: Props) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const field = useRef<HTMLDivElement>(null);
  const [chosen, setChosen] = useState(0);
  const [shape, setShape] = useState(aspect ?? 16 / 9);
  const [missing, setMissing] = useState<string | null>(null);
  const shown = picture === missing ? small : picture;
  const current = regions[chosen];
  const replace = (place: number, region: Region) =>
    onChange(regions.map((one, number) => (number === place ? region : one)));

  function add(kind: RegionKind): void {
    onChange([...regions, newRegion(kind, kind === "zone" ? freshName(regions, t("zoneName")) : "")]);
    setChosen(regions.length);
  }

  function drag(event: PointerEvent, place: number): void {
    const box = field.current?.getBoundingClientRect();
    if (!box || !current || !event.currentTarget.hasPointerCapture(event.pointerId)) return;
    const to = at((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    replace(chosen, { ...current, points: current.points.map((one, number) => (number === place ? to : one)) });
  }

  function press(event: KeyboardEvent, place: number): void {
    if (!current) return;
    const by = STEPS[event.key];
    if (by) replace(chosen, movedPoint(current, place, event.shiftKey ? [by[0] * 5, by[1] * 5] : by));
    else if (event.key === "Delete" || event.key === "Backspace") replace(chosen, withoutPoint(current, place));
    else if (event.key === "+" || event.key === "Insert") replace(chosen, splitSide(current, place));
    else return;
    event.preventDefault();
  }

  return (
    <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_18rem]">
      <div className="grid content-start gap-2">
        <div
          ref={field}
          className="relative w-full touch-none select-none overflow-hidden rounded-xl border bg-black"
          style={{ aspectRatio: shape, maxWidth: `calc(64vh * ${shape})` }}
        >
          {shown && (
            <img
              src={shown}
              alt={t("picture")}
              draggable={false}
              className="size-full"
              onLoad={({ currentTarget }) => {
                const { naturalWidth, naturalHeight } = currentTarget;
                if (naturalWidth && naturalHeight) setShape(naturalWidth / naturalHeight);
              }}
              onError={() => setMissing(picture)}
            />
          )}
          <svg
            viewBox="0 0 100 100"
            preserveAspectRatio="none"
            className="absolute inset-0 size-full"
            aria-hidden="true"
          >
            {regions.map((region, place) => (
              // biome-ignore lint/a11y/noStaticElementInteractions: keys choose a shape in the list beside it
              <polygon
                // biome-ignore lint/suspicious/noArrayIndexKey: a shape is its place
                key={place}
                points={cornersText(region.points)}
                vectorEffect="non-scaling-stroke"
                className={cn("cursor-pointer stroke-2", LOOKS[region.kind].shape, place === chosen && "stroke-[3]")}
                onClick={() => setChosen(place)}
              />
            ))}
          </svg>
          {current?.points.map(([x, y], place) => (
            <button
              // biome-ignore lint/suspicious/noArrayIndexKey: a corner is its place
              key={place}
              type="button"
              aria-label={t("corner", { number: place + 1, x: Math.round(x * 100), y: Math.round(y * 100) })}
              title={t("cornerHint")}
              onPointerDown={(event) => {
                event.currentTarget.setPointerCapture(event.pointerId);
                event.currentTarget.focus();
              }}
              onPointerMove={(event) => drag(event, place)}
              onKeyDown={(event) => press(event, place)}
              onDoubleClick={() => replace(chosen, splitSide(current, place))}
              style={{ left: `${x * 100}%`, top: `${y * 100}%` }}
              className="-translate-x-1/2 -translate-y-1/2 absolute grid size-6 cursor-move touch-none place-items-center rounded-full focus-visible:outline-white"
            >
              <span className={cn("size-3.5 rounded-full border-2 border-black", LOOKS[current.kind].dot)} />
            </button>
          ))}
        </div>
        <p className="text-quiet text-xs">{t("how")}</p>
      </div>
      <div className="grid content-start gap-4">
        <div className="grid gap-2">
          {REGION_KINDS.map((kind) => (
            <div key={kind} className="flex items-start gap-2">
              <Button
                variant="outline"
                size="small"
                className="w-40 justify-start"
                disabled={regions.filter((one) => one.kind === kind).length >= REGIONS_MAX}
                onClick={() => add(kind)}
              >
                <Plus aria-hidden="true" />
                {t(`kind.${kind}`)}
              </Button>
              <p className="text-quiet text-xs">{t(`hint.${kind}`)}</p>
            </div>
          ))}
        </div>
        {regions.length > 0 && (
          <ul aria-label={t("list")} className="grid gap-1">
            {regions.map((region, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a shape is its place
              <li key={place} className="flex items-center gap-1">
                <button
                  type="button"
                  aria-pressed={place === chosen}
                  onClick={() => setChosen(place)}
                  className={cn(
                    "flex min-w-0 flex-1 items-center gap-2 rounded-md px-2 py-1.5 text-left text-sm",
                    place === chosen ? "bg-accent-soft" : "hover:bg-raised",
                  )}
                >
                  <span
                    aria-hidden="true"
                    className={cn("size-3 shrink-0 rounded-sm border", LOOKS[region.kind].list)}
                  />
                  <span className="truncate">{named(region)}</span>
                </button>
                <Button
                  variant="ghost"
                  size="icon"
                  className="size-8"
                  aria-label={`${shared("action.remove")}: ${named(region)}`}
                  onClick={() => {
                    onChange(regions.filter((_, number) => number !== place));
                    setChosen(Math.max(0, place - 1));
                  }}
                >
                  <Trash2 aria-hidden="true" />
                </Button>
              </li>
            ))}
          </ul>
        )}
        {current?.kind === "zone" && (
          <Field
            label={t("name")}
            value={current.name}
            maxLength={64}
            required
            onChange={(event) => replace(chosen, { ...current, name: event.target.value })}
          />
        )}
      </div>
    </div>
  );

  function named(region: Region): string {
    const alike = regions.filter((one) => one.kind === region.kind);
    return region.kind === "zone"
      ? `${t("kind.zone")}: ${region.name}`
      : `${t(`kind.${region.kind}`)} ${alike.indexOf(region) + 1}`;
  }
}
