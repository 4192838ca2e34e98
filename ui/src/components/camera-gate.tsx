import { useTranslation } from "react-i18next";
import { askExplain } from "@/api/camera";
import { errandPicture, useErrand } from "@/api/errands";
import type { Camera, Errand } from "@/api/types";
import { type ExplainedLook, explainedOf, saidBy } from "@/display/errands";
import { percentText } from "@/display/sizes";
import { clockTime } from "@/display/times";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { FormProblem } from "./entry-page";
import { SentProblem } from "./form-problem";
import { Still } from "./still";
import { Button } from "./ui/button";
import { Cell, Row, Table } from "./ui/table";

const useWords = addWords("cameras", words);

/** Why the last looks at a camera were analyzed or were not, by numbers and as a picture. */
export function CameraGate({ camera }: { camera: Camera }) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const explain = useErrand();
  const errand = explain.data;
  return (
    <div className="grid gap-4">
      <div className="flex flex-wrap items-center gap-3">
        <p className="text-quiet text-sm">{t("gateLead")}</p>
        <Button
          variant="outline"
          disabled={explain.isPending}
          onClick={() => explain.mutate(() => askExplain(camera.camera_id))}
        >
          {t(explain.isPending ? "explaining" : "explain")}
        </Button>
      </div>
      <SentProblem error={explain.error} />
      {errand && errand.state !== "done" && (
        <FormProblem text={`${saidBy(errand, i18n.language)} (${shared("problem.code", { code: errand.state })})`} />
      )}
      {errand?.state === "done" && <Explanation errand={errand} />}
    </div>
  );
}

function Explanation({ errand }: { errand: Errand }) {
  const { t } = useWords();
  const { rule, pass, learned, clockCells, looks } = explainedOf(errand);
  const headings = [t("time"), t("verdict"), t("reason"), t("strength"), t("changed")];
  return (
    <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_auto] lg:items-start">
      <div className="grid content-start gap-2">
        {errand.has_picture && (
          <Still src={errandPicture(errand.errand_uuid)} alt={t("explainPicture")} className="rounded-xl border" />
        )}
        <p className="text-quiet text-sm">{t("explainPicture")}</p>
        <p className="text-sm">
          {rule === "threshold" ? t("rule.threshold") : t("rule.contrast", { pass: pass ?? "–", learned })}
        </p>
        {clockCells > 0 && <p className="text-sm">{t("clock", { count: clockCells })}</p>}
      </div>
      <Table label={t("looks")} headings={headings} narrow>
        {looks.map((look) => (
          <LookRow key={look.at} look={look} />
        ))}
      </Table>
    </div>
  );
}

const REASONS = ["quiet", "change", "whole", "learning", "sticky", "forced"] as const;

function LookRow({ look }: { look: ExplainedLook }) {
  const { t, i18n } = useWords();
  const reason = REASONS.find((one) => one === look.reason) ?? "unknown";
  const verdict = (["analyze", "forced", "skip"] as const).find((one) => one === look.verdict);
  return (
    <Row>
      <Cell column={0} className="tabular-nums">
        {clockTime(look.at, i18n.language)}
      </Cell>
      <Cell column={1} className={look.verdict === "skip" ? "text-quiet" : "font-medium"}>
        {verdict ? t(`verdicts.${verdict}`) : look.verdict}
      </Cell>
      <Cell column={2} className="sm:whitespace-nowrap">
        {t(`reasons.${reason}`)}
      </Cell>
      <Cell column={3} className="tabular-nums">
        {look.z === null ? "–" : look.z.toFixed(1)}
      </Cell>
      <Cell column={4} className="tabular-nums">
        {look.changed === null ? "–" : percentText(look.changed, i18n.language)}
      </Cell>
    </Row>
  );
}
