import { Eye, Pin, PinOff, Play } from "lucide-react";
import { type FormEvent, Suspense, useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation, useSearchParams } from "react-router";
import { framePicture } from "@/api/addresses";
import { useCameras, useSession } from "@/api/queries";
import type { Camera, Suggestion } from "@/api/types";
import { useProblemText } from "@/components/problem-notice";
import { Still } from "@/components/still";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { SelectField } from "@/components/ui/field";
import { shortMoment } from "@/display/times";
import { useNowBy } from "@/hooks/use-now";
import { later } from "@/shell/later";
import { liveCameraOf, liveTarget } from "./addresses";
import { useCamera, useClearSuggestion, usePinSuggestion, useSuggestion } from "./queries";

const SuggestPlayer = later(() => import("./suggest-player"), "default");

/** The height of the heading and what is below it, with a suggestion or without: what is under the pane stays there. */
const WHOLE = "xl:h-[21.75rem]";

const PIN_MINUTES = [5, 15, 30, 60];

/** The camera to watch now, and why; the server decides, or somebody who pins one. */
export function SuggestPane() {
  const { t } = useTranslation();
  const { data, isPending } = useSuggestion();
  const session = useSession().data;
  const [isPinning, setPinning] = useState(false);
  // Without an answer there is nothing to say: the pane is no part of anything else. Its place is kept until then.
  if (!data) return isPending ? <div aria-hidden="true" className={`max-xl:hidden ${WHOLE}`} /> : null;
  const { suggestion } = data;
  const mayPin = session?.permissions.includes("manage_cameras") ?? false;
  return (
    <section aria-labelledby="suggest-title">
      <div className="mb-2 flex h-7 items-center justify-between gap-2">
        <h2 id="suggest-title" className="font-semibold">
          {t("suggest.title")}
        </h2>
        {/* Where it stands above the wall, nothing to watch takes no room. */}
        {!suggestion && (
          <span className="mr-auto truncate text-quiet text-sm xl:hidden">{t("suggest.noneShort")}</span>
        )}
        {mayPin && !isPinning && (
          <Button variant="ghost" size="small" onClick={() => setPinning(true)}>
            <Pin aria-hidden="true" />
            {t("suggest.pin")}
          </Button>
        )}
      </div>
      {isPinning && <PinForm onDone={() => setPinning(false)} />}
      {suggestion ? (
        <Suggested key={suggestion.camera_id} suggestion={suggestion} mayClear={mayPin} />
      ) : (
        <p className="rounded-xl border border-dashed px-4 py-3 text-center text-quiet text-sm max-xl:hidden xl:grid xl:min-h-[19.5rem] xl:place-content-center">
          {t("suggest.none")}
        </p>
      )}
    </section>
  );
}

function Suggested({ suggestion, mayClear }: { suggestion: Suggestion; mayClear: boolean }) {
  const { t, i18n } = useTranslation();
  const now = useNowBy(60_000);
  const { search } = useLocation();
  const { camera_id, camera_name, manual } = suggestion;
  const [isRefused, setRefused] = useState(false);
  const { data: camera } = useCamera(camera_id, true);
  const clear = useClearSuggestion();
  const problem = useProblemText();
  return (
    <Card className="overflow-hidden max-xl:grid max-xl:grid-cols-[9rem_minmax(0,1fr)] max-xl:sm:grid-cols-[20rem_minmax(0,1fr)] max-xl:sm:grid-rows-[auto_1fr] xl:min-h-[19.5rem]">
      <div className="max-xl:sm:row-span-2">
        <Pictures camera={camera} suggestion={suggestion} onRefused={setRefused} />
      </div>
      <div className="grid min-w-0 grid-cols-[minmax(0,1fr)] content-start gap-2 p-3 pb-2">
        <div className="flex flex-wrap items-center gap-x-2">
          <h3 title={camera_name} className="min-w-0 max-w-full truncate font-medium text-sm">
            {camera_name}
          </h3>
          {manual && <Badge className="text-quiet">{t("suggest.manual")}</Badge>}
          <span className="ml-auto whitespace-nowrap text-quiet text-xs tabular-nums">
            {t("suggest.until", { time: shortMoment(suggestion.until, now, i18n.language) })}
          </span>
        </div>
        <p className="text-sm">{t("suggest.why", { reason: suggestion.reason })}</p>
        {isRefused && <p className="text-quiet text-xs">{t("suggest.stillOnly")}</p>}
      </div>
      {/* On a telephone below both, where there is room for all of them. */}
      <div className="grid content-start gap-2 px-3 pb-3 max-sm:col-span-2 max-sm:pt-1">
        <div className="flex flex-wrap gap-1.5">
          <Button asChild size="small">
            <Link to={liveTarget(search, camera_id)}>
              <Play aria-hidden="true" />
              {t("live.watch")}
            </Link>
          </Button>
          {suggestion.event_uuid && (
            <Button asChild variant="outline" size="small">
              <Link to={`/events/${suggestion.event_uuid}`}>
                <Eye aria-hidden="true" />
                {t("suggest.event")}
              </Link>
            </Button>
          )}
          {mayClear && (
            <Button
              variant="ghost"
              size="icon"
              className="ml-auto size-7"
              aria-label={t("suggest.clear")}
              disabled={clear.isPending}
              onClick={() => clear.mutate()}
            >
              <PinOff aria-hidden="true" />
            </Button>
          )}
        </div>
        {clear.error && (
          <p role="alert" className="text-severity-3 text-sm">
            {t("suggest.failed")}: {problem(clear.error)}
          </p>
        )}
      </div>
    </Card>
  );
}

interface PicturesProps {
  camera: Camera | undefined;
  suggestion: Suggestion;
  onRefused: (isRefused: boolean) => void;
}

/** Moving ones, but not for those who asked for less motion or less data, nor behind the live view itself. */
function Pictures({ camera, suggestion, onRefused }: PicturesProps) {
  const { t } = useTranslation();
  const [params] = useSearchParams();
  const { camera_id, camera_name } = suggestion;
  const refused = useCallback((isRefused: boolean) => onRefused(isRefused), [onRefused]);
  const picture = camera?.latest_picture;
  const still = (
    <Still
      src={picture ? framePicture(picture.frame_uuid, "infer") : null}
      alt={t("live.still", { name: camera_name })}
    />
  );
  if (liveCameraOf(params) !== null || wantsStills()) return still;
  return (
    <Suspense fallback={still}>
      <SuggestPlayer camera={camera} cameraId={camera_id} name={camera_name} onRefused={refused} />
    </Suspense>
  );
}

function wantsStills(): boolean {
  const { connection } = navigator as { connection?: { saveData?: boolean } };
  return (
    (globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false) || connection?.saveData === true
  );
}

function PinForm({ onDone }: { onDone: () => void }) {
  const { t } = useTranslation();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  const [chosen, setChosen] = useState("");
  const [minutes, setMinutes] = useState(PIN_MINUTES[0] ?? 5);
  const pin = usePinSuggestion();
  const problem = useProblemText();
  const cameraId = chosen || (cameras[0]?.camera_id ?? "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    pin.mutate({ cameraId, minutes }, { onSuccess: onDone });
  };
  return (
    <Card className="mb-3 p-3">
      <form onSubmit={submit} className="grid gap-3">
        <div className="grid grid-cols-[minmax(0,1fr)_auto] gap-3">
          <SelectField
            label={t("suggest.pinCamera")}
            value={cameraId}
            onChange={(event) => setChosen(event.target.value)}
          >
            {cameras.map((one) => (
              <option key={one.camera_id} value={one.camera_id}>
                {one.name}
              </option>
            ))}
          </SelectField>
          <SelectField
            label={t("suggest.pinFor")}
            value={minutes}
            onChange={(event) => setMinutes(Number(event.target.value))}
          >
            {PIN_MINUTES.map((count) => (
              <option key={count} value={count}>
                {t("suggest.minutes", { count })}
              </option>
            ))}
          </SelectField>
        </div>
        {pin.error && (
          <p role="alert" className="text-severity-3 text-sm">
            {t("suggest.failed")}: {problem(pin.error)}
          </p>
        )}
        <div className="flex gap-2">
          <Button type="submit" size="small" disabled={!cameraId || pin.isPending}>
            {t("suggest.pinSubmit")}
          </Button>
          <Button variant="ghost" size="small" onClick={onDone}>
            {t("suggest.cancel")}
          </Button>
        </div>
      </form>
    </Card>
  );
}
