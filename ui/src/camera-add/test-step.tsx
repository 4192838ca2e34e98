import { CircleAlert, CircleCheck } from "lucide-react";
import { Link } from "react-router";
import { askLook } from "@/api/camera";
import { errandPicture, useErrand } from "@/api/errands";
import type { Camera } from "@/api/types";
import { SentProblem } from "@/components/form-problem";
import { Still } from "@/components/still";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Skeleton } from "@/components/ui/skeleton";
import { saidBy } from "@/display/errands";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";

const useWords = addWords("cameras", words);

/** A look as the camera was set up, and where to go from here. */
export function TestStep({ camera, onAnother }: { camera: Camera; onAnother: () => void }) {
  const { t, i18n } = useWords();
  const look = useErrand();
  const errand = look.data;
  return (
    <Card className="grid max-w-2xl gap-4 p-4">
      <h2 className="font-semibold">{camera.name}</h2>
      <p className="text-quiet text-sm">{t("testLead")}</p>
      <Button
        variant={errand?.state === "done" ? "outline" : "primary"}
        className="justify-self-start"
        disabled={look.isPending}
        onClick={() => look.mutate(() => askLook(camera.camera_id))}
      >
        {t(look.isPending ? "testing" : "test")}
      </Button>
      <SentProblem error={look.error} />
      <div aria-live="polite" className="grid gap-2">
        {look.isPending && <Skeleton className="aspect-video w-full rounded-xl" />}
        {errand?.has_picture && (
          <Still src={errandPicture(errand.errand_uuid)} alt={t("probePicture")} className="rounded-xl border" />
        )}
        {errand && (
          <p className="flex items-center gap-2 text-sm">
            {errand.state === "done" ? (
              <CircleCheck aria-hidden="true" className="size-5 shrink-0 text-live" />
            ) : (
              <CircleAlert aria-hidden="true" className="size-5 shrink-0 text-severity-3" />
            )}
            {errand.state === "done" ? t("testOk") : saidBy(errand, i18n.language)}
          </p>
        )}
      </div>
      <div className="flex flex-wrap justify-end gap-2">
        <Button variant="ghost" onClick={onAnother}>
          {t("another")}
        </Button>
        <Button asChild variant="outline">
          <Link to={`/cameras/${encodeURIComponent(camera.camera_id)}`}>{t("toCamera")}</Link>
        </Button>
        <Button asChild variant="outline">
          <Link to="/">{t("toWall")}</Link>
        </Button>
      </div>
    </Card>
  );
}
