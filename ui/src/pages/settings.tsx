import { type ComponentType, Suspense } from "react";
import { Navigate, useParams } from "react-router";
import { useSession } from "@/api/queries";
import { LanguageSwitch } from "@/components/language-switch";
import { PageHead } from "@/components/page-head";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Skeleton } from "@/components/ui/skeleton";
import { LinkTabs } from "@/components/ui/tabs";
import { applyTheme } from "@/display/theme";
import { usePageTitle } from "@/hooks/use-page-title";
import { useTheme } from "@/hooks/use-theme";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";
import { later } from "@/shell/later";

const useWords = addWords("settings", words);

interface SettingsPart {
  name: PartName;
  needs: string | null;
  /** For people who may share, which is more than a permission. */
  sharing?: boolean;
  Part: ComponentType;
}

const PARTS: readonly SettingsPart[] = [
  { name: "appearance", needs: null, Part: Appearance },
  { name: "account", needs: null, Part: later(() => import("@/settings/account"), "Account") },
  { name: "shares", needs: "read", sharing: true, Part: later(() => import("@/settings/shares"), "Shares") },
  { name: "people", needs: "manage_people", Part: later(() => import("@/settings/people"), "People") },
  { name: "sites", needs: "manage_cameras", Part: later(() => import("@/settings/sites"), "Sites") },
  {
    name: "notifications",
    needs: "manage_deliveries",
    Part: later(() => import("@/settings/notifications"), "Notifications"),
  },
  { name: "retention", needs: "manage_cameras", Part: later(() => import("@/settings/retention"), "Retention") },
  {
    name: "vocabulary",
    needs: "manage_system",
    Part: later(() => import("@/settings/vocabulary"), "VocabularyPart"),
  },
  { name: "features", needs: "manage_system", Part: later(() => import("@/settings/features"), "Features") },
  { name: "tenants", needs: "manage_system", Part: later(() => import("@/settings/tenants"), "Tenants") },
  {
    name: "configuration",
    needs: "manage_system",
    Part: later(() => import("@/settings/configuration"), "Configuration"),
  },
];
type PartName =
  | "appearance"
  | "account"
  | "shares"
  | "people"
  | "sites"
  | "notifications"
  | "retention"
  | "vocabulary"
  | "features"
  | "tenants"
  | "configuration";

export function SettingsPage() {
  const { part = "appearance" } = useParams();
  const { t } = useWords();
  const { data: session } = useSession();
  const parts = PARTS.filter(
    ({ needs, sharing }) =>
      (needs === null || session?.permissions.includes(needs)) && (!sharing || session?.may_share),
  );
  const shown = parts.find(({ name }) => name === part);
  usePageTitle(shown ? `${t(shown.name)} · ${t("title")}` : t("title"));
  if (!shown) return <Navigate to="/settings" replace />;
  return (
    <>
      <PageHead title={t("title")} />
      <div className="mb-5">
        <LinkTabs
          label={t("parts")}
          links={parts.map(({ name }) => ({
            to: name === "appearance" ? "/settings" : `/settings/${name}`,
            text: t(name),
          }))}
        />
      </div>
      <Suspense
        fallback={
          <div aria-busy="true">
            <Skeleton className="h-64 w-full rounded-xl" />
          </div>
        }
      >
        <shown.Part />
      </Suspense>
    </>
  );
}

function Appearance() {
  const { t } = useWords();
  const theme = useTheme();
  return (
    <Card className="grid max-w-md gap-4 p-4">
      <p className="text-quiet text-sm">{t("appearanceLead")}</p>
      <div className="flex items-center justify-between gap-4">
        <span className="text-sm">{t("language")}</span>
        <LanguageSwitch />
      </div>
      <div className="flex items-center justify-between gap-4">
        <span className="text-sm">{t("theme")}</span>
        <div className="flex gap-1">
          {(["dark", "light"] as const).map((one) => (
            <Button
              key={one}
              variant={one === theme ? "primary" : "outline"}
              size="small"
              aria-pressed={one === theme}
              onClick={() => applyTheme(one)}
            >
              {t(one)}
            </Button>
          ))}
        </div>
      </div>
    </Card>
  );
}
