// Amounts of data as people read them.

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

export function bytesText(bytes: number, language: string): string {
  const step = Math.min(UNITS.length - 1, bytes < 1 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** step;
  const digits = step === 0 || value >= 100 ? 0 : 1;
  const number = new Intl.NumberFormat(language, { maximumFractionDigits: digits, minimumFractionDigits: digits });
  return `${number.format(value)} ${UNITS[step]}`;
}

export const numberText = (value: number, language: string) => new Intl.NumberFormat(language).format(value);

export const percentText = (share: number, language: string) =>
  new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 0 }).format(share);
