import { Moon, Sun } from "lucide-react";
import { useTranslation } from "react-i18next";
import { applyTheme } from "@/display/theme";
import { useTheme } from "@/hooks/use-theme";
import { Button } from "./ui/button";

export function ThemeSwitch() {
  const { t } = useTranslation();
  const theme = useTheme();
  const other = theme === "dark" ? "light" : "dark";
  const name = other === "light" ? t("theme.toLight") : t("theme.toDark");
  const Icon = other === "light" ? Sun : Moon;
  return (
    <Button variant="ghost" size="icon" aria-label={name} title={name} onClick={() => applyTheme(other)}>
      <Icon aria-hidden="true" />
    </Button>
  );
}
