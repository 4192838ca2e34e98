import { ChevronLeft, ChevronRight } from "lucide-react";
import { dayBeside } from "@/display/times";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/timeline";
import { Button } from "./ui/button";
import { DateInput } from "./ui/field";

const useWords = addWords("timeline", words);

interface Props {
  /** Null: none is chosen, and the one before is yesterday. */
  day: string | null;
  today: string;
  onDay: (day: string) => void;
}

/** A day, with those beside it one click away. */
export function DayChoice({ day, today, onDay }: Props) {
  const { t } = useWords();
  return (
    <div className="flex min-w-0 items-center gap-1">
      <Button
        variant="outline"
        size="icon"
        className="size-9"
        aria-label={t("dayBefore")}
        onClick={() => onDay(dayBeside(day ?? today, -1))}
      >
        <ChevronLeft aria-hidden="true" />
      </Button>
      <DateInput
        aria-label={t("day")}
        value={day ?? ""}
        max={today}
        onChange={(event) => event.target.value && onDay(event.target.value)}
        className="h-9 min-w-0 flex-1 rounded-md border bg-ground px-2 text-sm"
      />
      <Button
        variant="outline"
        size="icon"
        className="size-9"
        aria-label={t("dayAfter")}
        disabled={day === null || day >= today}
        onClick={() => onDay(dayBeside(day ?? today, 1))}
      >
        <ChevronRight aria-hidden="true" />
      </Button>
    </div>
  );
}
