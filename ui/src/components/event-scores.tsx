import { Gauge } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { EventDetail } from "@/api/types";
import { Card } from "@/components/ui/card";
import { Meter } from "@/components/ui/meter";
import { ratherFits } from "@/display/search-filter";

/** What a language model scored the event at. The server sends it to investigators only. */
export function EventScores({ event }: { event: EventDetail }) {
  const { t } = useTranslation();
  if (event.scores.length === 0) return null;
  return (
    <Card className="p-4">
      <h2 className="mb-3 flex items-center gap-2 font-semibold text-sm">
        <Gauge aria-hidden="true" className="size-4" />
        {t("opinion.scores")}
      </h2>
      <ul className="grid gap-2">
        {event.scores.map((one) => (
          <li key={one.category}>
            <Link to={`/search?${new URLSearchParams({ score: ratherFits(one.category) })}`} className="block">
              <Meter label={one.category} value={one.score} max={1} text={one.score.toFixed(2)} warnAt={2} />
            </Link>
          </li>
        ))}
      </ul>
      <p className="mt-3 text-quiet text-xs">{t("opinion.scoresNote")}</p>
    </Card>
  );
}
