// The WebSocket to the server: numbered requests, answers part by part, and what was seen before.

// ms after which a draft on its way is given up for a newer one; until then the newer one waits, so
// that a slider that never rests still has its curve drawn
const HOLD = 8000;
const SEEN = 400; // remembered requests

export class Link {
  constructor({ hello, lost, work }) {
    this.number = 0;
    this.open = new Map(); // request number -> what to do with its answers
    this.seen = new Map(); // request as text -> its parts
    this.hello = hello;
    this.lost = lost;
    this.work = work; // told what comes: channel, answers so far, of how many; null at the end
    this.connect();
  }

  connect() {
    const address = new URL("socket", location.href); // without our own hash
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    address.hash = address.search = "";
    this.socket = new WebSocket(address);
    this.socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.socket.onclose = () => {
      this.open.clear();
      clearTimeout(this.later);
      this.busy = this.held = null;
      this.lost();
      setTimeout(() => this.connect(), 1500);
    };
  }

  /**
   * Ask for something. `part(index, value)` is called for each piece, `done(parts)` at the end,
   * `error(text)` if the server refuses. A new request of a channel replaces the one before; but a
   * draft that is on its way still gives its parts, and `draft(parts)` instead of `done`, and only
   * then the newest goes.
   */
  ask(channel, message, handlers) {
    const key = JSON.stringify(message);
    const known = channel === "picture" && this.seen.get(key);
    if (known) {
      this.drop(channel);
      return handlers.done?.(known);
    }
    if (channel === "theory") {
      clearTimeout(this.later);
      this.supersede();
      if (this.seen.has(key)) {
        const parts = this.seen.get(key);
        this.seen.delete(key);
        this.seen.set(key, parts);
        parts.forEach((value, index) => handlers.part?.(index, value));
        handlers.done?.(parts);
        return;
      }
      const wait = this.busy ? this.busy + HOLD - performance.now() : 0;
      if (message.coarse && wait > 0) {
        this.held = () => this.send(channel, key, message, handlers);
        this.later = setTimeout(() => this.release(), wait);
        return;
      }
    } else if (channel !== "spec") {
      this.drop(channel);
    }
    this.send(channel, key, message, handlers);
  }

  /** Whether the answer to a message is remembered. */
  knows(message) {
    return this.seen.has(JSON.stringify(message));
  }

  /** Send what waited for the request before it. */
  release() {
    clearTimeout(this.later);
    const { held } = this;
    this.held = null;
    this.busy = null;
    held?.();
  }

  /** What is on its way answers to nobody any more; the end of a draft lets the next one go. */
  drop(channel) {
    if (channel === "theory") this.held = null;
    for (const request of this.open.values()) if (request.channel === channel) request.handlers = {};
    this.work(channel, null);
  }

  /** A newer value is there: an older draft may still be drawn, but it is not the end. */
  supersede() {
    this.held = null;
    for (const request of this.open.values()) {
      if (request.channel === "theory")
        request.handlers = request.coarse ? { part: request.handlers.part, draft: request.handlers.draft } : {};
    }
  }

  /** End what is computed: "simulate" or "curve". */
  stop(stops) {
    this.drop(stops === "curve" ? "theory" : "simulation");
    this.transmit({ type: "stop", id: ++this.number, stops });
  }

  send(channel, key, message, handlers) {
    for (const [number, request] of this.open) if (request.channel === channel) this.open.delete(number);
    const id = ++this.number;
    this.open.set(id, { channel, key, handlers, parts: [], coarse: message.coarse });
    if (channel === "theory") this.busy = message.coarse ? performance.now() : null;
    this.work(channel, 0, null);
    this.transmit({ ...message, id });
  }

  transmit(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  receive(message) {
    if (message.type === "hello") return this.hello(message);
    const request = this.open.get(message.id);
    if (!request) return;
    if (message.type !== "parts" || !message.left) this.work(request.channel, null);
    if (message.type === "error") {
      this.open.delete(message.id);
      request.handlers.error?.(message.text);
    } else if (message.type === "spec") {
      this.open.delete(message.id);
      request.handlers.done?.(message.text);
    } else {
      for (const [index, value] of message.parts) {
        request.parts[index] = value;
        request.handlers.part?.(index, value);
      }
      const come = request.parts.filter(() => true).length; // parts that are there
      if (message.left) this.work(request.channel, come, come + message.left);
      else {
        this.open.delete(message.id);
        if (request.channel !== "simulation") this.remember(request);
        (request.handlers.done ?? request.handlers.draft)?.(request.parts);
      }
    }
    if (request.coarse && !this.open.has(message.id)) this.release();
  }

  remember(request) {
    if (request.parts.some((part) => part?.error)) return;
    this.seen.set(request.key, request.parts);
    if (this.seen.size > SEEN) this.seen.delete(this.seen.keys().next().value);
  }
}

/** What a set of answers of the theory has in common, for the line below the plot. */
export function report(parts) {
  const good = parts.filter((part) => !part.error);
  return {
    methods: [...new Set(good.map((part) => part.method))],
    worst: Math.max(0, ...good.map((part) => part.error_estimate ?? 0)),
    failed: parts.find((part) => part.error)?.error,
  };
}
