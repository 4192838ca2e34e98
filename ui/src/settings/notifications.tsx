import { useId } from "react";
import { Link } from "react-router";
import { NotifyPreview } from "@/components/notify-preview";
import { Receivers } from "@/components/receivers";
import { Rules } from "@/components/rules";
import { Button } from "@/components/ui/button";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/rules";

const useWords = addWords("rules", words);

/** Whom camserver tells, of what, and whether it gets there; what was sent is among the deliveries. */
export function Notifications() {
  const { t } = useWords();
  const [receiversId, rulesId] = [useId(), useId()];
  return (
    <div className="grid gap-8">
      <section aria-labelledby={receiversId}>
        <h2 id={receiversId} className="font-semibold text-lg">
          {t("receivers")}
        </h2>
        <p className="mb-3 max-w-3xl text-quiet text-sm">{t("receiversLead")}</p>
        <Receivers />
      </section>
      <section aria-labelledby={rulesId}>
        <h2 id={rulesId} className="mb-1 font-semibold text-lg">
          {t("title")}
        </h2>
        <Rules />
      </section>
      <NotifyPreview />
      <nav aria-label={t("seeAlso")} className="flex flex-wrap gap-2">
        <Button asChild variant="outline" size="small">
          <Link to="/deliveries">{t("log")}</Link>
        </Button>
        <Button asChild variant="outline" size="small">
          <Link to="/deliveries/snoozes">{t("snoozes")}</Link>
        </Button>
      </nav>
    </div>
  );
}
