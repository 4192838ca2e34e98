/** Text as it is compared: capitals and widths make no difference. */
const plain = (text: string) => text.normalize("NFKC").toLowerCase();

/** Whether every word that is wanted is somewhere in the text. */
export function matches(text: string, wanted: string): boolean {
  const among = plain(text);
  return plain(wanted)
    .split(/\s+/)
    .every((word) => among.includes(word));
}
