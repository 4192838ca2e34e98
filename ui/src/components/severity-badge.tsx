import { Circle, Info, OctagonAlert, TriangleAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import { type Severity, severityOf } from "@/display/severity";
import { Badge } from "./ui/badge";
import { cn } from "./ui/class-names";

const LOOKS: Record<Severity, { Icon: typeof Circle; badge: string; edge: string }> = {
  0: { Icon: Circle, badge: "border-severity-0/40 text-severity-0", edge: "border-l-severity-0/50" },
  1: { Icon: Info, badge: "border-severity-1/40 bg-severity-1/10 text-severity-1", edge: "border-l-severity-1" },
  2: {
    Icon: TriangleAlert,
    badge: "border-severity-2/40 bg-severity-2/10 text-severity-2",
    edge: "border-l-severity-2",
  },
  3: {
    Icon: OctagonAlert,
    badge: "border-severity-3/50 bg-severity-3/10 text-severity-3",
    edge: "border-l-severity-3",
  },
};

export const severityEdge = (value: number) => LOOKS[severityOf(value)].edge;

export function SeverityBadge({ severity, className }: { severity: number; className?: string }) {
  const { t } = useTranslation();
  const step = severityOf(severity);
  const { Icon, badge } = LOOKS[step];
  return (
    <Badge className={cn(badge, className)}>
      <Icon aria-hidden="true" />
      <span className="sr-only">{t("severity.label")}: </span>
      {t(`severity.s${step}`)}
    </Badge>
  );
}
