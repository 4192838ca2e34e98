import type { ja } from "./ja";

// English has a singular that Japanese lacks: where Japanese has `x_other`, English may have `x_one` too.
export type Texts<T> = {
  [K in keyof T]: T[K] extends string ? string : Texts<T[K]>;
} & { [K in keyof T as K extends `${infer Stem}_other` ? `${Stem}_one` : never]?: string };

/** The words every language must have. */
export type Words = Texts<typeof ja>;
