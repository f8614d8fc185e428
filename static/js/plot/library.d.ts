/** As much of Plotly as this page uses. */
export interface PlotlyPoint {
  x: number;
  y: number;
  curveNumber: number;
}

export interface PlotlyEvent {
  points: PlotlyPoint[];
  event: MouseEvent;
}

export interface PlotlyElement extends HTMLElement {
  on(name: "plotly_click" | "plotly_hover", hear: (event: PlotlyEvent) => void): void;
  on(name: "plotly_unhover" | "plotly_doubleclick", hear: () => void): void;
  on(name: "plotly_relayout", hear: (change: Record<string, unknown>) => void): void;
}

export interface PlotlyLibrary {
  react(root: HTMLElement, traces: object[], layout: object, config: object): Promise<PlotlyElement>;
  relayout(root: HTMLElement, change: object): Promise<PlotlyElement>;
  purge(root: HTMLElement): void;
}

declare global {
  interface Window {
    Plotly?: PlotlyLibrary;
  }
}
