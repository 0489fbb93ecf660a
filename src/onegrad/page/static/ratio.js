// Canvases have two pixels or more for each of the page's, so that pictures which are saved are sharp; imported before uPlot.

const { get } = Object.getOwnPropertyDescriptor(window, "devicePixelRatio");
Object.defineProperty(window, "devicePixelRatio", { get: () => Math.max(2, get.call(window)), configurable: true });
