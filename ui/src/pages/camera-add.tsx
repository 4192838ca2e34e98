import { Check } from "lucide-react";
import { useState } from "react";
import type { Camera } from "@/api/types";
import { EMPTY, STEPS, type Step, type StepProps } from "@/camera-add/draft";
import { DrawStep } from "@/camera-add/draw-step";
import { FindStep } from "@/camera-add/find-step";
import { PlaceStep } from "@/camera-add/place-step";
import { ProbeStep } from "@/camera-add/probe-step";
import { TestStep } from "@/camera-add/test-step";
import { PageHead } from "@/components/page-head";
import { cn } from "@/components/ui/class-names";
import { usePageTitle } from "@/hooks/use-page-title";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";

const useWords = addWords("cameras", words);

/** From a network with cameras in it to one that is watched: find, try, draw, name, test. */
export function CameraAddPage() {
  const { t } = useWords();
  usePageTitle(t("wizard"));
  const [step, setStep] = useState<Step>("find");
  const [draft, setDraft] = useState(EMPTY);
  const [made, setMade] = useState<Camera | null>(null);
  const props: StepProps = {
    draft,
    onChange: (changes) => setDraft((now) => ({ ...now, ...changes })),
    onStep: setStep,
  };
  return (
    <div className="mx-auto max-w-5xl">
      <PageHead title={t("wizard")} back={{ to: "/cameras", text: t("toList") }} />
      <Progress step={step} />
      {step === "find" && <FindStep {...props} />}
      {step === "probe" && <ProbeStep {...props} />}
      {step === "draw" && <DrawStep {...props} />}
      {step === "place" && (
        <PlaceStep
          {...props}
          onMade={(camera) => {
            setMade(camera);
            // A login is not kept longer than it is needed.
            setDraft(EMPTY);
            setStep("test");
          }}
        />
      )}
      {step === "test" && made && (
        <TestStep
          camera={made}
          onAnother={() => {
            setMade(null);
            setStep("find");
          }}
        />
      )}
    </div>
  );
}

function Progress({ step }: { step: Step }) {
  const { t } = useWords();
  const place = STEPS.indexOf(step);
  return (
    <ol aria-label={t("steps")} className="mb-5 flex flex-wrap gap-x-4 gap-y-2 text-sm">
      {STEPS.map((one, number) => (
        <li
          key={one}
          aria-current={one === step ? "step" : undefined}
          className={cn("flex items-center gap-2", one === step ? "font-semibold" : "text-quiet")}
        >
          <span
            aria-hidden="true"
            className={cn(
              "grid size-6 place-items-center rounded-full border text-xs",
              number < place && "border-live text-live",
              one === step && "border-accent bg-accent text-accent-text",
            )}
          >
            {number < place ? <Check className="size-3.5" /> : number + 1}
          </span>
          {t(`step.${one}`)}
        </li>
      ))}
    </ol>
  );
}
