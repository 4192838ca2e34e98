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

describe("words", () => {
  it("are there in both languages, with the same things filled in", () => {
    const [japanese, english] = [texts(ja), texts(en)];
    expect([...english.keys()].sort()).toEqual([...japanese.keys()].sort());
    for (const [name, text] of japanese) {
      expect(text.trim(), name).not.toBe("");
      expect(placeholders(english.get(name) ?? ""), name).toEqual(placeholders(text));
    }
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
