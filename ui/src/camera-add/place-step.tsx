import { useTranslation } from "react-i18next";
import { useAddCamera } from "@/api/camera";
import { useCameras } from "@/api/queries";
import type { Camera, CameraAsked } from "@/api/types";
import { PresetSelect } from "@/components/camera-settings";
import { SentProblem } from "@/components/form-problem";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Field } from "@/components/ui/field";
import { CAMERA_ID_PATTERN, suggestedId } from "@/display/camera-names";
import { drawnValues } from "@/display/regions";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { tell } from "@/shell/notices";
import type { StepProps } from "./draft";
import { StepButtons } from "./step-parts";

const useWords = addWords("cameras", words);

/** Its name and the kind of place; then it is added. */
export function PlaceStep({ draft, onChange, onStep, onMade }: StepProps & { onMade: (camera: Camera) => void }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const add = useAddCamera();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  const taken = cameras.map((one) => one.camera_id);
  const cameraId = draft.cameraId || suggestedId(draft.name, draft.url, taken);
  const isTaken = taken.includes(cameraId);

  function save(): void {
    const login = draft.user || draft.password ? { user: draft.user, password: draft.password } : {};
    const drawn = Object.fromEntries(
      Object.entries(drawnValues(draft.regions)).filter(([, value]) => value !== null),
    );
    const asked: CameraAsked = {
      camera_id: cameraId,
      do_not_process: false,
      network_zone: "local",
      name: draft.name.trim(),
      source: { url: draft.url.trim(), ...login },
      ...(draft.sub.trim() ? { sub: { url: draft.sub.trim() } } : {}),
      ...(draft.site ? { site: draft.site } : {}),
      ...(draft.preset ? { hints: { preset: draft.preset } } : {}),
      ...drawn,
    };
    add.mutate(asked, {
      onSuccess: (camera) => {
        tell({ text: t("added", { name: camera.name }) });
        onMade(camera);
      },
    });
  }

  return (
    <form
      className="max-w-xl"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Card className="grid gap-4 p-4">
        <Field
          label={t("name")}
          value={draft.name}
          onChange={(event) => onChange({ name: event.target.value })}
          required
          maxLength={128}
          hint={t("nameHint")}
        />
        <Field
          label={t("id")}
          value={cameraId}
          onChange={(event) => onChange({ cameraId: event.target.value })}
          required
          pattern={CAMERA_ID_PATTERN}
          autoCapitalize="none"
          spellCheck={false}
          hint={isTaken ? t("idTaken") : t("idHint")}
          aria-invalid={isTaken}
        />
        <PresetSelect value={draft.preset} onChange={(preset) => onChange({ preset })} />
        <SentProblem error={add.error} />
      </Card>
      <StepButtons>
        <Button variant="ghost" onClick={() => onStep("draw")}>
          {shared("action.back")}
        </Button>
        <Button type="submit" disabled={add.isPending || isTaken}>
          {t("save")}
        </Button>
      </StepButtons>
    </form>
  );
}
