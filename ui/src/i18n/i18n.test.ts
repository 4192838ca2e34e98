import { describe, expect, it } from "vitest";
import { en } from "./en";
import { browserLanguage, chooseLanguage, chosenLanguage, currentLanguage, followAccount } from "./index";
import { ja } from "./ja";

/** Every text by its path; the endings of plurals differ between languages. */
function texts(words: object, path = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of Object.entries(words)) {
    const place = `${path}${name.replace(/_(one|other)$/, "")}`;
    if (typeof value === "string") found.set(place, value);
    else for (const [inner, text] of texts(value, `${place}.`)) found.set(inner, text);
  }
  return found;
}

const placeholders = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1]).sort();

const PAGES = import.meta.glob<{ ja: object; en: object }>("./pages/*.ts", { eager: true });
const SOURCES = import.meta.glob<string>("./pages/*.ts", { eager: true, query: "?raw", import: "default" });
const EVERYTHING = [["shared", { ja, en }] as const, ...Object.entries(PAGES)];

describe("words", () => {
  it.each(EVERYTHING)("of %s are there in both languages, with the same things filled in", (_, words) => {
    const [japanese, english] = [texts(words.ja), texts(words.en)];
    expect([...english.keys()].sort()).toEqual([...japanese.keys()].sort());
    for (const [name, text] of japanese) {
      expect(text.trim(), name).not.toBe("");
      expect(placeholders(english.get(name) ?? ""), name).toEqual(placeholders(text));
    }
  });

  it.each(Object.entries(SOURCES))("of %s go by the file's name", (path, source) => {
    const name = /([\w-]+)\.ts$/.exec(path)?.[1];
    expect(source).toMatch(new RegExp(`interface PageWords \\{\\s+${name}: typeof ja;`));
  });
});

describe("the language", () => {
  it.each([
    [["ja-JP", "en"], "ja"],
    [["fr", "en-GB", "ja"], "en"],
    [["fr"], "ja"],
    [[], "ja"],
  ])("of a browser that speaks %j is %s", (wanted, language) => {
    expect(browserLanguage(wanted)).toBe(language);
  });

  it("is the account's until another one is chosen", () => {
    followAccount("en");
    expect(currentLanguage()).toBe("en");
    chooseLanguage("ja");
    followAccount("en");
    expect(currentLanguage()).toBe("ja");
    expect(chosenLanguage()).toBe("ja");
    expect(document.documentElement.lang).toBe("ja");
  });
});
