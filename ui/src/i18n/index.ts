// Words in two languages. Which one: what this browser's user chose, else their account's, else the browser's own.

import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { keep, readKept } from "@/display/kept";
import { en } from "./en";
import { ja } from "./ja";

export const LANGUAGES = ["ja", "en"] as const;
export type Language = (typeof LANGUAGES)[number];

const isLanguage = (value: unknown): value is Language => LANGUAGES.includes(value as Language);

/** The first of the browser's languages that is one of ours; Japanese where none is. */
export function browserLanguage(wanted: readonly string[] = navigator.languages): Language {
  return wanted.map((name) => name.slice(0, 2).toLowerCase()).find(isLanguage) ?? "ja";
}

export function chosenLanguage(): Language | null {
  const kept = readKept("language");
  return isLanguage(kept) ? kept : null;
}

export function chooseLanguage(language: Language): void {
  keep("language", language);
  void i18next.changeLanguage(language);
}

/** The account's language, unless another one was chosen in this browser. */
export function followAccount(language: string): void {
  if (chosenLanguage() === null && isLanguage(language)) void i18next.changeLanguage(language);
}

export const currentLanguage = (): Language => (i18next.language === "en" ? "en" : "ja");

i18next.on("languageChanged", (language) => {
  document.documentElement.lang = language;
});

void i18next.use(initReactI18next).init({
  resources: { ja: { translation: ja }, en: { translation: en } },
  lng: chosenLanguage() ?? browserLanguage(),
  fallbackLng: "en",
  interpolation: { escapeValue: false }, // React escapes
  initAsync: false,
});

export default i18next;
