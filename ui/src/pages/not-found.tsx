import { MapPinOff } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { EmptyState } from "@/components/empty-state";
import { Button } from "@/components/ui/button";
import { usePageTitle } from "@/hooks/use-page-title";

export function NotFoundPage() {
  const { t } = useTranslation();
  usePageTitle(t("notFound.title"));
  return (
    <EmptyState page Icon={MapPinOff} title={t("notFound.title")} lead={t("notFound.lead")}>
      <Button asChild>
        <Link to="/">{t("notFound.home")}</Link>
      </Button>
    </EmptyState>
  );
}
