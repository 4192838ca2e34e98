// A file with many cameras, before the server reads it.

/** The server takes no more in one request. */
export const TEXT_MAX = 900_000;

export const EXAMPLE_CSV = `camera_id,name,site,url,sub_url,user,password
entrance,Entrance,,rtsp://192.0.2.10/main,rtsp://192.0.2.10/sub,admin,secret
yard,Yard,,rtsp://192.0.2.11/main,,admin,secret
`;

export const formatOf = (name: string): "csv" | "frigate" => (/\.ya?ml$/i.test(name) ? "frigate" : "csv");

/** UTF-8 where it is; spreadsheets in Japan save Shift JIS, which is never good UTF-8. */
export function readText(bytes: ArrayBuffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("shift_jis").decode(bytes);
  }
}
