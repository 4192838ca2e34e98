import { Gauge } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useLiveBudget } from "@/api/queries";
import { cn } from "./ui/class-names";

/** How much of live view's budget is in use. Its place is kept while it is not known, so that nothing beside it moves. */
export function BudgetMark() {
  const { t } = useTranslation();
  const { data: budget } = useLiveBudget();
  // Where nothing streams there is none.
  if (!budget || budget.units === 0) return <span aria-hidden="true" className="hidden w-20 sm:block" />;
  const isShort = !budget.healthy || budget.used >= budget.units;
  const text = t(budget.healthy ? "budget.used" : "budget.busy", { used: budget.used, units: budget.units });
  return (
    <Link
      to="/system"
      title={text}
      aria-label={text}
      className={cn(
        "hidden h-9 w-20 items-center justify-center gap-1.5 rounded-md text-xs tabular-nums hover:bg-raised sm:flex",
        isShort ? "text-severity-2" : "text-quiet",
      )}
    >
      <Gauge aria-hidden="true" className="size-4" />
      {budget.used}/{budget.units}
    </Link>
  );
}
