import type { ja } from "./ja";
import type { PageWords } from "./page-word-names";

interface Resources extends PageWords {
  translation: typeof ja;
}

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "translation";
    resources: Resources;
  }
}
