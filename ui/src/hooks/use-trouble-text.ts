import { causeOf, troubleOf } from "@/display/troubles";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/troubles";

const useWords = addWords("troubles", words);

/** What went wrong with another server in the reader's language; what has no words here is said in the server's. */
export function useTroubleText(): (sentence: string) => string {
  const { t } = useWords();
  return (sentence) => {
    const trouble = troubleOf(sentence);
    if (trouble === null) return sentence;
    const { kind, named } = trouble;
    const why = named.cause === undefined ? null : causeOf(named.cause);
    const cause = why === null ? named.cause : t(`causes.${why}`);
    return t(`kinds.${kind}`, { ...named, cause, defaultValue: sentence });
  };
}
