import { Bot } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { EventDetail } from "@/api/types";
import { Badge } from "@/components/ui/badge";
import { Card } from "@/components/ui/card";
import { dateAndTime } from "@/display/times";
import { usePhrases } from "@/hooks/use-phrases";

/** What a language model said of the event's picture, marked as such. The server sends it to investigators only. */
export function EventOpinion({ event }: { event: EventDetail }) {
  const { t, i18n } = useTranslation();
  const { tagLabel } = usePhrases();
  const review = event.llm_review;
  if (!review) return null;
  return (
    <Card className="p-4">
      <h2 className="mb-3 flex items-center gap-2 font-semibold text-sm">
        <Bot aria-hidden="true" className="size-4" />
        {t("opinion.title")}
      </h2>
      <Badge title={review.label.id} className="mb-2 bg-raised">
        {tagLabel(review.label)}
      </Badge>
      <p className="[overflow-wrap:anywhere] text-sm">{review.memo}</p>
      <p className="mt-3 text-quiet text-xs">{t("opinion.note")}</p>
      <p className="text-quiet text-xs tabular-nums">
        {t("opinion.source", { model: review.model, time: dateAndTime(review.created_at, i18n.language) })}
      </p>
    </Card>
  );
}
