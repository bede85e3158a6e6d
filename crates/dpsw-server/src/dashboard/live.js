// Follows something that changes, and comes back when the connection is lost.

import { open, Refused, Unreachable } from "./api.js";

/** Nothing for so long, not even a sign of life, means that the connection is gone. The service gives one every 15 s. */
const SILENCE_MS = 40_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
/** What was refused may be allowed later: a stream is made again, a window fills. */
const REFUSED_WAIT_MS = 10_000;

/**
 * Runs a task again and again until it is stopped. `round(signal, alive)` calls `alive` whenever it hears something;
 * `onstate` is told "live", "lost" or "refused".
 */
export class Follower {
  #round;
  #onstate;
  #stop = new AbortController();
  #wake = () => {};
  #failures = 0;

  constructor(round, onstate) {
    this.#round = round;
    this.#onstate = onstate;
    this.#run();
  }

  stop() {
    this.#stop.abort();
    this.#wake();
  }

  /** Tries now rather than later. */
  hurry() {
    this.#failures = 0;
    this.#wake();
  }

  async #run() {
    while (!this.#stop.signal.aborted) {
      const error = await this.#once();
      if (this.#stop.signal.aborted) return;
      await this.#wait(this.#delay(error));
    }
  }

  /** One connection, up to its end. */
  async #once() {
    const connection = new AbortController();
    const end = () => connection.abort();
    this.#stop.signal.addEventListener("abort", end);
    let silence = setTimeout(end, SILENCE_MS);
    const alive = () => {
      clearTimeout(silence);
      silence = setTimeout(end, SILENCE_MS);
      this.#failures = 0;
      if (!this.#stop.signal.aborted) this.#onstate({ name: "live" });
    };
    try {
      await this.#round(connection.signal, alive);
      return new Unreachable("the service ended the connection");
    } catch (error) {
      return error;
    } finally {
      clearTimeout(silence);
      this.#stop.signal.removeEventListener("abort", end);
    }
  }

  #delay(error) {
    const isRefused = error instanceof Refused && !error.isPassing;
    if (!isRefused && !(error instanceof Refused) && !(error instanceof Unreachable) && error.name !== "AbortError") console.error(error);
    const doubled = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    this.#failures += 1;
    // Many pages that lost the same service do not all come back at the same moment.
    const spread = doubled * (0.75 + Math.random() / 2);
    const delay = isRefused ? REFUSED_WAIT_MS : Math.max(spread, 1000 * (error.wait || 0));
    this.#onstate({ name: isRefused ? "refused" : "lost", error, retryAt: Date.now() + delay });
    return delay;
  }

  #wait(delay) {
    return new Promise((done) => {
      const timer = setTimeout(done, delay);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }
}

/** Reads server-sent events from a path; hands over the data of the newest one. `EventSource` could send no token. */
export function events(path, ondata) {
  return async (signal, alive) => {
    const response = await open(path, { signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "";
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        buffer += value;
        const end = buffer.lastIndexOf("\n\n");
        if (end >= 0) {
          const data = newest(buffer.slice(0, end));
          buffer = buffer.slice(end + 2);
          if (data !== null) ondata(data);
        }
        alive();
      }
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Unreachable("the connection was lost");
    } finally {
      reader.cancel().catch(() => {});
    }
  };
}

/** The data of the last event among several; comments have none. */
export function newest(text) {
  const at = Math.max(text.lastIndexOf("\ndata: "), text.startsWith("data: ") ? 0 : -1);
  if (at < 0) return null;
  const start = text.indexOf(":", at) + 2;
  const end = text.indexOf("\n", start);
  return text.slice(start, end < 0 ? undefined : end);
}

/** Asks again and again, for what cannot be followed. */
export function polled(question, everyMs) {
  return async (signal, alive) => {
    for (;;) {
      await question(signal);
      alive();
      await pause(everyMs, signal);
    }
  };
}

/** Waits, unless it is told to end. */
function pause(ms, signal) {
  return new Promise((done, stop) => {
    const end = () => {
      clearTimeout(timer);
      stop(new DOMException("ended", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", end);
      done();
    }, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** Calls one at a time. What is asked for meanwhile is asked for once, afterwards. */
export function newestOnly(call, done, failed) {
  let isRunning = false;
  let isAskedAgain = false;
  return async function again() {
    isAskedAgain = isRunning;
    if (isRunning) return;
    isRunning = true;
    try {
      done(await call());
    } catch (error) {
      failed(error);
    }
    isRunning = false;
    if (isAskedAgain) again();
  };
}
