/** Every file in pages/ adds its words here. */
// biome-ignore lint/suspicious/noEmptyInterface: filled by the files in pages/
export interface PageWords {}
