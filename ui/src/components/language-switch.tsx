import { useTranslation } from "react-i18next";
import { chooseLanguage, LANGUAGES } from "@/i18n";
import { cn } from "./ui/class-names";

const NAMES = { ja: "日本語", en: "English" } as const;
const SHORT = { ja: "JA", en: "EN" } as const;

export function LanguageSwitch() {
  const { t, i18n } = useTranslation();
  return (
    <fieldset className="flex rounded-md border p-0.5">
      <legend className="sr-only">{t("app.language")}</legend>
      {LANGUAGES.map((language) => (
        <button
          key={language}
          type="button"
          lang={language}
          aria-label={NAMES[language]}
          aria-pressed={i18n.language === language}
          onClick={() => chooseLanguage(language)}
          className={cn(
            "h-8 rounded px-2 font-medium text-xs",
            i18n.language === language ? "bg-accent-soft text-text" : "text-quiet hover:text-text",
          )}
        >
          {SHORT[language]}
        </button>
      ))}
    </fieldset>
  );
}
