import { useState } from "react";
import { useTranslation } from "react-i18next";
import { framePicture } from "@/api/addresses";
import { useChangeCamera } from "@/api/camera";
import type { Camera } from "@/api/types";
import { drawnValues, type Region, regionsOf } from "@/display/regions";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { tell } from "@/shell/notices";
import { SentProblem } from "./form-problem";
import { RegionEditor } from "./region-editor";
import { Button } from "./ui/button";

const useWords = addWords("cameras", words);

/** Masks and zones of a camera that is there. */
export function CameraRegions({ camera }: { camera: Camera }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const change = useChangeCamera(camera.camera_id);
  const saved = regionsOf(camera.own);
  const [drawn, setDrawn] = useState<Region[] | null>(null);
  // A picture that is replaced by the next one while somebody draws would only disturb.
  const [picture] = useState(camera.latest_picture?.frame_uuid ?? null);
  const shown = picture ?? camera.latest_picture?.frame_uuid;
  return (
    <form
      className="grid gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (!drawn) return;
        change.mutate(drawnValues(drawn), {
          onSuccess: () => {
            setDrawn(null);
            tell({ text: t("regionsSaved"), undo: () => change.mutate(drawnValues(saved)) });
          },
        });
      }}
    >
      <p className="text-quiet text-sm">{t("regionsLead")}</p>
      {!shown && <p className="rounded-lg border border-dashed px-4 py-3 text-sm">{t("noPicture")}</p>}
      <RegionEditor
        picture={shown ? framePicture(shown, "full") : null}
        // Of a quiet look there is no large one.
        small={shown ? framePicture(shown, "infer") : null}
        regions={drawn ?? saved}
        onChange={setDrawn}
      />
      <SentProblem error={change.error} />
      <div className="flex flex-wrap items-center justify-end gap-2">
        {drawn && <p className="mr-auto text-severity-2 text-sm">{t("unsaved")}</p>}
        {drawn && (
          <Button variant="outline" onClick={() => setDrawn(null)}>
            {t("discard")}
          </Button>
        )}
        <Button type="submit" disabled={!drawn || change.isPending}>
          {shared("action.save")}
        </Button>
      </div>
    </form>
  );
}
