import { Moon, Sun } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { applyTheme, currentTheme } from "@/display/theme";
import { Button } from "./ui/button";

export function ThemeSwitch() {
  const { t } = useTranslation();
  const [theme, setTheme] = useState(currentTheme);
  const other = theme === "dark" ? "light" : "dark";
  const name = other === "light" ? t("theme.toLight") : t("theme.toDark");
  const Icon = other === "light" ? Sun : Moon;
  return (
    <Button
      variant="ghost"
      size="icon"
      aria-label={name}
      title={name}
      onClick={() => {
        applyTheme(other);
        setTheme(other);
      }}
    >
      <Icon aria-hidden="true" />
    </Button>
  );
}
