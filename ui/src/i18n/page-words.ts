// Words of single pages. Each page has a file of its own in pages/, which comes with the page and not before:
//
//   export const ja = { title: "案件" };
//   export const en: Texts<typeof ja> = { title: "Cases" };
//   declare module "../page-word-names" {
//     interface PageWords {
//       cases: typeof ja;
//     }
//   }
//
// and the page says `const useWords = addWords("cases", { ja, en })`. A test holds the two languages of every file
// together, and the file's name to the name of its words.

import { type UseTranslationResponse, useTranslation } from "react-i18next";
import i18next, { LANGUAGES } from "./index";
import type { PageWords } from "./page-word-names";
import type { Texts } from "./words";

export type { PageWords } from "./page-word-names";

/** Makes a page's words known; answers the hook that reads them. */
export function addWords<Name extends keyof PageWords>(
  name: Name,
  words: { ja: PageWords[Name]; en: Texts<PageWords[Name]> },
): () => UseTranslationResponse<Name, undefined> {
  for (const language of LANGUAGES) i18next.addResourceBundle(language, name, words[language]);
  return () => useTranslation(name as never) as unknown as UseTranslationResponse<Name, undefined>;
}
