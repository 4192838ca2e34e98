import { writeFile } from "node:fs/promises";
import { expect, test } from "@playwright/test";
import { addCamera, needed } from "./person";
import { englishPerson, expectMoving, leave, videoOf } from "./watching";

/** The same camera, as it comes and through another program's server. */
const CAMERAS = [
  { id: "clock", name: "Clock", address: needed("CAMSERVER_CLOCK") },
  { id: "relayed", name: "Relayed", address: process.env.CAMSERVER_RELAYED ?? "" },
].filter(({ address }) => address);
/** Pictures that are read, after so many in which the player catches up; a bench asks for more. */
const SAMPLES = Number(process.env.CAMSERVER_SAMPLES ?? 15);
const SETTLING = Number(process.env.CAMSERVER_SETTLING ?? 0);

test("how old a picture is when it is shown, by the clock in it", async ({ browser }) => {
  const { page, complaints } = await englishPerson(browser);
  for (const { id, name, address } of CAMERAS) {
    await addCamera(page, id, name, address);
    await page.goto(`/?live=${id}`);
    await expectMoving(page);
    const { ages, torn } = await videoOf(page).evaluate(readClock, { samples: SAMPLES, settling: SETTLING });
    // A picture is never shown before it was made.
    expect(Math.min(...ages)).toBeGreaterThanOrEqual(0);
    expect(torn).toBeLessThan(ages.length);
    const figures = process.env.CAMSERVER_FIGURES;
    if (figures) await writeFile(figures, JSON.stringify(ages));
    await leave(page);
  }
  expect(complaints).toEqual([]);
});

/** The ages of pictures in ms, each at the moment it is shown. tests/fakes/gstreamer/clock.py says how to read one. */
function readClock(video: Element, asked: { samples: number; settling: number }) {
  const [columns, rows, width, height] = [8, 5, 40, 36];
  const canvas = document.createElement("canvas");
  canvas.width = columns * width;
  canvas.height = rows * height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const film = video as HTMLVideoElement;
  const read = () => {
    const now = Date.now();
    context?.drawImage(film, 0, 0, canvas.width, canvas.height);
    const pixels = context?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
    const bytes = Array.from({ length: rows }, (_, row) => {
      let byte = 0;
      for (let column = 0; column < columns; column += 1) {
        const place = ((row + 0.5) * height * canvas.width + (column + 0.5) * width) * 4;
        byte = byte * 2 + ((pixels[place] ?? 0) > 127 ? 1 : 0);
      }
      return byte;
    });
    const [first = 0, second = 0, third = 0, fourth = 0, sum] = bytes;
    if (((first + second + third + fourth) & 255) !== sum) return null;
    const made = first * 2 ** 24 + second * 2 ** 16 + third * 2 ** 8 + fourth;
    // The highest bits are not in the picture.
    const age = (now % 2 ** 32) - made;
    return age < -(2 ** 31) ? age + 2 ** 32 : age;
  };
  return new Promise<{ ages: number[]; torn: number }>((resolve) => {
    const ages: number[] = [];
    let [seen, torn] = [0, 0];
    const look = () => {
      seen += 1;
      if (seen > asked.settling) {
        const age = read();
        if (age === null) torn += 1;
        else ages.push(age);
      }
      if (ages.length < asked.samples && torn < 10 * asked.samples) film.requestVideoFrameCallback(look);
      else resolve({ ages, torn });
    };
    film.requestVideoFrameCallback(look);
  });
}
