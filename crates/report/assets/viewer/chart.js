/* ---- one interactive chart on uPlot ---- */
const axisStyle = () => ({ stroke: color('soft'), grid: { stroke: color('grid'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif', labelFont: '11.5px system-ui, sans-serif' });
const logSplits = (lo, hi, wanted, unit) => {
  if (unit === 'By' && hi / lo >= 8) {
    const from = Math.ceil(Math.log2(lo) - 1e-9), to = Math.floor(Math.log2(hi) + 1e-9), every = Math.max(1, Math.ceil((to - from + 1) / wanted)), powers = [];
    for (let e = Math.ceil(from / every) * every; e <= to; e += every) powers.push(2 ** e);
    return powers;
  }
  const first = Math.ceil(Math.log10(lo) - 1e-9), last = Math.floor(Math.log10(hi) + 1e-9), out = [];
  if (last - first + 1 < 3) {
    for (let e = first - 1; e <= last; e += 1) for (const m of [1, 2, 5]) { const v = m * 10 ** e; if (v >= lo * 0.999999 && v <= hi * 1.000001) out.push(v); }
    if (out.length >= 2) return out;
    return [lo, Math.sqrt(lo * hi), hi];
  }
  const every = Math.max(1, Math.ceil((last - first + 1) / wanted));
  for (let e = first; e <= last; e += every) out.push(10 ** e);
  return out;
};
const roundRange = (lo, hi, log) => {
  if (!(lo <= hi)) return log ? [1, 10] : [0, 1];
  if (log) {
    const a = 10 ** Math.floor(Math.log10(lo) + 1e-9), b = 10 ** Math.ceil(Math.log10(hi) - 1e-9);
    return b > a ? [a, b] : [a, a * 10];
  }
  if (lo > 0 && lo < 0.6 * hi) lo = 0;
  return hi > lo ? [lo, hi + (hi - lo) * 0.06] : [lo - 1, hi + 1];
};

/* spec: {height, x:{label,unit,log,lo,hi,splits,show}, y:{label,unit,log,lo,hi}, data, series, draw(u), hover(u,left,top)->text, zoomY, onZoom} */
class Chart {
  constructor(host, spec) {
    this.host = host; this.spec = spec;
    this.view = { x: [spec.x.lo, spec.x.hi], y: [spec.y.lo, spec.y.hi] };
    this.at = null;
    this.build();
    redraws.push(() => this.build());
    new ResizeObserver(() => {
      const w = host.clientWidth;
      if (!printing && w > 0 && this.u && w !== this.u.width) this.u.setSize({ width: w, height: this.u.height });
    }).observe(host);
    host.addEventListener('keydown', (e) => this.key(e));
  }
  build() {
    const { spec, host } = this;
    if (this.u) this.u.destroy();
    const scale = (axis, which) => ({ time: false, distr: axis.log ? 3 : 1, range: () => this.view[which] });
    const values = (axis) => (u, splits) => splits.map((v) => (v === null ? null : (axis.name || tick)(v, axis.unit)));
    const log = (axis, room) => (axis.splits ? { splits: axis.splits, filter: (u, s) => s }
      : axis.log ? { splits: (u, i, lo, hi) => logSplits(lo, hi, Math.max(2, Math.floor((i === 0 ? u.bbox.width : u.bbox.height) / devicePixelRatio / room)), axis.unit), filter: (u, s) => s } : {});
    const room = (u, texts) => Math.max(44, 16 + 6.2 * Math.max(0, ...(texts || []).map((t) => (t || '').length)));
    const shownX = spec.x.show !== false;
    const options = {
      width: printing ? PAPER_WIDTH : Math.max(200, host.clientWidth), height: spec.height, pxAlign: false,
      padding: [spec.top || 10, 26, shownX ? 0 : 4, 0],
      legend: { show: false }, focus: { alpha: 1 },
      scales: { x: scale(spec.x, 'x'), y: scale(spec.y, 'y') },
      axes: [
        { ...axisStyle(), show: shownX, label: spec.x.label, labelSize: 20, size: 30, space: WIDE() ? 80 : 62, values: values(spec.x), ...log(spec.x, 70) },
        { ...axisStyle(), label: spec.y.short ? null : spec.y.label, labelSize: 20, size: room, space: 34, values: values(spec.y), ...log(spec.y, 30) },
      ],
      cursor: { drag: { x: true, y: !!spec.zoomY, setScale: false, uni: 12 }, points: { show: false }, y: !!spec.zoomY, bind: { dblclick: () => () => { this.reset(); return null; } } },
      series: [{}, ...spec.series()],
      bands: spec.bands ? [{ series: [1, 2], fill: color('c0') + '40' }] : [],
      hooks: {
        draw: [(u) => spec.draw && spec.draw(u, this)],
        setCursor: [(u) => { if (u.cursor.left >= 0 && !this.still) this.read(u.cursor.left, u.cursor.top); }],
        setSelect: [(u) => this.select(u)],
      },
    };
    this.u = new uPlot(options, spec.data(), host);
  }
  select(u) {
    const s = u.select;
    if (s.width < 6 && s.height < 6) return;
    if (s.width >= 6) this.view.x = [u.posToVal(s.left, 'x'), u.posToVal(s.left + s.width, 'x')];
    if (this.spec.zoomY && s.height >= 6 && s.height < u.over.clientHeight - 2) this.view.y = [u.posToVal(s.top + s.height, 'y'), u.posToVal(s.top, 'y')];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.moved();
  }
  moved() { this.refresh(); if (this.spec.onZoom) this.spec.onZoom(this); }
  refresh() { this.still = true; this.u.setData(this.u.data, true); setTimeout(() => { this.still = false; }, 50); }
  zoomed() { return this.view.x[0] !== this.spec.x.lo || this.view.x[1] !== this.spec.x.hi || this.view.y[0] !== this.spec.y.lo || this.view.y[1] !== this.spec.y.hi; }
  reset() { this.view = { x: [this.spec.x.lo, this.spec.x.hi], y: [this.spec.y.lo, this.spec.y.hi] }; this.moved(); }
  read(left, top) { this.at = left; const t = this.spec.hover && this.spec.hover(this.u, left, top); if (t) this.spec.say(t); }
  zoom(factor) {
    const log = this.spec.x.log, f = log ? Math.log : (v) => v, g = log ? Math.exp : (v) => v;
    const [a, b] = this.view.x.map(f), center = this.at === null ? (a + b) / 2 : f(this.u.posToVal(this.at, 'x'));
    const lo = Math.max(f(this.spec.x.lo), center - (center - a) * factor), hi = Math.min(f(this.spec.x.hi), center + (b - center) * factor);
    if (hi > lo) { this.view.x = [g(lo), g(hi)]; this.moved(); }
  }
  key(e) {
    const width = this.u.over.clientWidth, step = e.shiftKey ? width / 8 : width / 80;
    const move = (to) => {
      this.at = Math.min(width - 1, Math.max(0, to));
      this.u.setCursor({ left: this.at, top: this.u.over.clientHeight / 2 }, true);
      this.read(this.at, this.u.over.clientHeight / 2);
    };
    const at = this.at === null ? width / 2 : this.at;
    const actions = { ArrowLeft: () => move(at - step), ArrowRight: () => move(at + step), Home: () => move(0), End: () => move(width), '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2), 0: () => this.reset() };
    if (actions[e.key]) { e.preventDefault(); actions[e.key](); }
  }
}

/* The parts around a chart: hosts, readout, reset and scale buttons. */
const stage = (figure, kind) => {
  const plot = $('.plot', figure);
  plot.replaceChildren();
  $$('.static', figure).forEach((el) => el.remove());
  const readout = make('output', { class: 'readout', 'aria-live': 'polite' });
  const reset = make('button', { type: 'button', disabled: '' }, 'Reset zoom');
  const tools = make('div', { class: 'tools' }, readout, reset);
  plot.after(tools);
  const title = $('h3, h4', figure).textContent;
  const host = (name) => {
    const el = make('div', { class: 'live', tabindex: '0', role: 'application', 'aria-roledescription': 'chart', 'aria-label': kind + ': ' + title + (name ? ', ' + name : '') + '. Arrow keys move the cursor; a table follows.' });
    plot.append(el);
    return el;
  };
  const say = (parts) => {
    readout.replaceChildren(...parts.map((p) => (Array.isArray(p) ? make('b', {}, p[0]) : p)));
  };
  return { plot, tools, readout, reset, host, say };
};
const scaleSwitch = (st, axis, positive, redo) => {
  if (!positive) return;
  const button = make('button', { type: 'button' });
  const word = () => { button.textContent = axis.log ? 'Linear height' : 'Log height'; };
  button.addEventListener('click', () => { axis.log = !axis.log; word(); redo(); });
  word();
  st.tools.append(button);
};
const swatch = (i, symbol) => drawn('svg', { viewBox: '0 0 22 12', 'aria-hidden': 'true' },
  drawn('path', { class: (symbol ? 'point c' : 'line d' + dashOf(i) + ' c') + (i % 8), d: symbol ? 'M11 6' + SYMBOLS[i % 8] : 'M0 6h22' }));
const legend = (st, names, symbol, toggled) => {
  const shown = names.map(() => true);
  if (names.length < 2) return shown;
  const list = make('ul', { class: 'legend' });
  names.forEach((name, i) => {
    const button = make('button', { type: 'button', 'aria-pressed': 'true' }, swatch(i, symbol), name);
    button.addEventListener('click', () => { shown[i] = !shown[i]; button.setAttribute('aria-pressed', String(shown[i])); toggled(); });
    list.append(make('li', {}, button));
  });
  st.plot.after(list);
  return shown;
};
const clip = (u, body) => {
  const { ctx, bbox } = u;
  ctx.save(); ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip(); body(ctx); ctx.restore();
};
const dpr = () => window.devicePixelRatio || 1;

/* ---- marks: a panel that steps through them ---- */
const markPanel = (after, marks, unit, select) => {
  if (!marks.length) return null;
  const text = make('p'), previous = make('button', { type: 'button', 'aria-label': 'previous mark' }, '‹'), next = make('button', { type: 'button', 'aria-label': 'next mark' }, '›');
  const box = make('div', { class: 'markbox' }, previous, next, text);
  let at = -1;
  const near = (i) => {
    const other = (j, word) => (marks[j] ? `${word} ${marks[j].label} (${human(Math.abs(marks[j].x - marks[i].x), unit)} away)` : '');
    return [other(i - 1, 'before it'), other(i + 1, 'after it')].filter(Boolean).join(', ');
  };
  const show = (i) => {
    at = i;
    const m = marks[i];
    text.replaceChildren(`Mark ${i + 1} of ${marks.length}: `, make('b', {}, m.label), ` at ${human(m.x, unit)}${m.detail ? ': ' + m.detail : ''}${near(i) ? '; ' + near(i) : ''}.`);
    select(i);
  };
  previous.addEventListener('click', () => show((at <= 0 ? marks.length : at) - 1));
  next.addEventListener('click', () => show((at + 1) % marks.length));
  text.textContent = `${marks.length} mark${marks.length > 1 ? 's' : ''}: click one, or step through.`;
  after.after(box);
  return { show, current: () => at };
};
const nearest = (marks, u, left, reach) => {
  let best = -1, gap = reach;
  marks.forEach((m, i) => { const d = Math.abs(u.valToPos(m.x, 'x') - left); if (d < gap) { gap = d; best = i; } });
  return best;
};
const clickable = (host, chart, marks, panel) => {
  if (!panel) return;
  let from = 0;
  host.addEventListener('mousedown', (e) => { from = e.clientX; });
  host.addEventListener('mouseup', (e) => {
    if (Math.abs(e.clientX - from) > 3) return;
    const i = nearest(marks, chart.u, e.clientX - chart.u.over.getBoundingClientRect().left, 9);
    if (i >= 0) panel.show(i);
  });
};
