import { CircleAlert, CircleCheck } from "lucide-react";
import { useTranslation } from "react-i18next";
import { askProbe } from "@/api/camera";
import { errandPicture, useErrand } from "@/api/errands";
import type { Errand } from "@/api/types";
import { SentProblem } from "@/components/form-problem";
import { Still } from "@/components/still";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Skeleton } from "@/components/ui/skeleton";
import { probedStream, saidBy, streamText } from "@/display/errands";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import type { StepProps } from "./draft";
import { LoginFields, StepButtons } from "./step-parts";

const useWords = addWords("cameras", words);

/** Tries the address with its login: a picture, or why there is none. */
export function ProbeStep({ draft, onChange, onStep }: StepProps) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const probe = useErrand();
  const errand = probe.data ?? draft.probe;
  const stream = errand?.state === "done" ? probedStream(errand) : null;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onChange({ probe: null });
        probe.mutate(() => askProbe(draft.url.trim(), draft, draft.site || null), {
          onSuccess: (done) => onChange({ probe: done.state === "done" ? done : null }),
        });
      }}
    >
      <div className="grid gap-5 lg:grid-cols-2">
        <Card className="grid content-start gap-4 p-4">
          <p className="break-all font-mono text-sm">{draft.url}</p>
          <LoginFields draft={draft} onChange={onChange} />
          <Button type="submit" variant={draft.probe ? "outline" : "primary"} disabled={probe.isPending}>
            {t(probe.isPending ? "probing" : "probe")}
          </Button>
        </Card>
        <div aria-live="polite">
          {probe.isPending && <Skeleton className="aspect-video w-full rounded-xl" />}
          <SentProblem error={probe.error} />
          {!probe.isPending && errand && <Outcome errand={errand} />}
          {stream && !probe.isPending && (
            <p className="mt-2 flex items-center gap-2 text-sm">
              <CircleCheck aria-hidden="true" className="size-5 text-live" />
              {t("probed", { stream: streamText(stream) })}
            </p>
          )}
        </div>
      </div>
      <StepButtons>
        <Button variant="ghost" onClick={() => onStep("find")}>
          {shared("action.back")}
        </Button>
        {!draft.probe && (
          <Button variant="outline" onClick={() => onStep("draw")}>
            {t("probeSkip")}
          </Button>
        )}
        <Button disabled={!draft.probe} onClick={() => onStep("draw")}>
          {shared("action.next")}
        </Button>
      </StepButtons>
    </form>
  );

  function Outcome({ errand: of }: { errand: Errand }) {
    if (of.state === "done") {
      return of.has_picture ? (
        <Still src={errandPicture(of.errand_uuid)} alt={t("probePicture")} className="rounded-xl border" />
      ) : null;
    }
    return (
      <Card role="alert" className="grid justify-items-start gap-2 p-4">
        <p className="flex items-center gap-2 font-semibold">
          <CircleAlert aria-hidden="true" className="size-5 text-severity-3" />
          {t("probeFailed")}
        </p>
        <p className="text-sm">{saidBy(of, i18n.language)}</p>
      </Card>
    );
  }
}
