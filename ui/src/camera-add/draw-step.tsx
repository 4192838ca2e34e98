import { useTranslation } from "react-i18next";
import { errandPicture } from "@/api/errands";
import { RegionEditor } from "@/components/region-editor";
import { Button } from "@/components/ui/button";
import { probedStream } from "@/display/errands";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import type { StepProps } from "./draft";
import { StepButtons } from "./step-parts";

const useWords = addWords("cameras", words);

/** What is not looked at, and what has a name, drawn on the picture. */
export function DrawStep({ draft, onChange, onStep }: StepProps) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const stream = draft.probe ? probedStream(draft.probe) : null;
  return (
    <>
      <p className="mb-3 text-quiet text-sm">{t("drawLead")}</p>
      <RegionEditor
        picture={draft.probe?.has_picture ? errandPicture(draft.probe.errand_uuid) : null}
        {...(stream ? { aspect: stream.width / stream.height } : {})}
        regions={draft.regions}
        onChange={(regions) => onChange({ regions })}
      />
      <StepButtons>
        <Button variant="ghost" onClick={() => onStep("probe")}>
          {shared("action.back")}
        </Button>
        <Button onClick={() => onStep("place")}>{shared("action.next")}</Button>
      </StepButtons>
    </>
  );
}
