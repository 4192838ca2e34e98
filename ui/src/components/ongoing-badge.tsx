import { useTranslation } from "react-i18next";
import { Badge } from "./ui/badge";

/** Pulses and never spins: a spinner reads as loading. */
export function OngoingBadge() {
  const { t } = useTranslation();
  return (
    <Badge className="border-live/40 bg-live/10 text-live">
      <span aria-hidden="true" className="relative flex size-2">
        <span className="absolute inline-flex size-full animate-ping rounded-full bg-live opacity-60" />
        <span className="relative inline-flex size-2 rounded-full bg-live" />
      </span>
      {t("event.ongoing")}
    </Badge>
  );
}
