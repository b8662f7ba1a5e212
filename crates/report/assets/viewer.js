
/* Viewer of machmeter reports: one drawing function per shape of data; knows no probe. */
(() => {
'use strict';
const root = document.documentElement;
let errors = 0;
const failed = (e) => { errors += 1; root.dataset.errors = String(errors); console.error(e); };
root.dataset.errors = '0';
window.addEventListener('securitypolicyviolation', (e) => failed(new Error('policy: ' + e.violatedDirective)));

/* ---- words and numbers ---- */
const digits = (v) => {
  const m = Math.abs(v);
  if (!Number.isFinite(v)) return '?';
  if (m === 0) return '0';
  if (m < 1e-4 || m >= 1e6) return v.toExponential(2).replace('e+', 'e');
  if (m >= 99.95) return v.toFixed(0);
  if (m >= 9.995) return v.toFixed(1);
  if (m >= 0.9995) return v.toFixed(2);
  return v.toFixed(Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(m)))));
};
const SCALES = {
  ns: [[1, 'ns'], [1e3, 'us'], [1e6, 'ms'], [1e9, 's']],
  By: [[1, 'B'], [1024, 'KiB'], [1048576, 'MiB'], [1073741824, 'GiB']],
  'By/s': [[1, 'B/s'], [1e3, 'kB/s'], [1e6, 'MB/s'], [1e9, 'GB/s']], '{flop}/s': [[1, 'flop/s'], [1e3, 'kflop/s'], [1e6, 'Mflop/s'], [1e9, 'Gflop/s']],
  Hz: [[1, 'Hz'], [1e3, 'kHz'], [1e6, 'MHz'], [1e9, 'GHz']],
};
const SUFFIX = { '{tick}': ' ticks', 'ns/By': ' ns/B', '[ppm]': ' ppm', '/Hz': ' /Hz' };
const human = (v, unit) => {
  const s = SCALES[unit];
  if (s) {
    const hit = [...s].reverse().find((f) => Math.abs(v) >= f[0] * 0.9995) || s[0];
    return digits(v / hit[0]) + ' ' + hit[1];
  }
  if (unit === '1' && v >= 0.9995 && v < 1) return v > 0.9999 ? '> 99.99 %' : +(Math.floor(v * 1e4) / 100).toFixed(2) + ' %';
  return unit === '1' ? digits(v * 100) + ' %' : digits(v) + (SUFFIX[unit] || '');
};
const tick = (v, unit) => {
  const [n, ...rest] = human(v, unit).split(' ');
  const [m, e] = n.split('e');
  const short = (m.includes('.') ? m.replace(/0+$/, '').replace(/\.$/, '') : m) + (e === undefined ? '' : 'e' + e);
  return [short, ...rest].join(' ');
};
const percentile = (x) => {
  const p = 1 - 1 / x;
  return String(+(p * 100).toFixed(6)) + ' %';
};

/* ---- building blocks ---- */
const $ = (s, el = document) => el.querySelector(s);
const $$ = (s, el = document) => [...el.querySelectorAll(s)];
const make = (tag, attributes = {}, ...children) => {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith('on')) el.addEventListener(k.slice(2), v); else if (v !== null) el.setAttribute(k, v);
  }
  el.append(...children);
  return el;
};
const color = (name) => getComputedStyle(root).getPropertyValue('--' + name).trim();
const DASH = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [12, 4], [1, 3], [6, 2, 1, 2, 1, 2]];
const dashOf = (i) => (i + 3 * Math.floor(i / 8)) % 8;
const redraws = [];
const WIDE = () => root.clientWidth > 600;

/* ---- theme ---- */
const THEMES = ['auto', 'light', 'dark'];
let theme = 'auto';
try { theme = localStorage.getItem('machmeter-theme') || 'auto'; } catch { /* storage is off: start from auto */ }
if (!THEMES.includes(theme)) theme = 'auto';
const applyTheme = (t) => {
  if (t === 'auto') delete root.dataset.theme; else root.dataset.theme = t;
  redraws.forEach((r) => r());
};
const themeButton = $('#theme');
const nameTheme = () => { themeButton.textContent = 'Theme: ' + theme; };
themeButton.addEventListener('click', () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % 3];
  try { localStorage.setItem('machmeter-theme', theme); } catch { /* not kept */ }
  nameTheme();
  applyTheme(theme);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => applyTheme(theme));
/* Canvases keep their pixels on paper, so charts are drawn anew for it: light, and as wide as a page. */
const PAPER_WIDTH = 660;
let printing = false;
window.addEventListener('beforeprint', () => { printing = true; applyTheme('light'); });
window.addEventListener('afterprint', () => { printing = false; applyTheme(theme); });

/* ---- one interactive chart on uPlot ---- */
const axisStyle = () => ({ stroke: color('soft'), grid: { stroke: color('grid'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif', labelFont: '11.5px system-ui, sans-serif' });
const logSplits = (lo, hi, wanted) => {
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
      : axis.log ? { splits: (u, i, lo, hi) => logSplits(lo, hi, Math.max(2, Math.floor((i === 0 ? u.bbox.width : u.bbox.height) / devicePixelRatio / room))), filter: (u, s) => s } : {});
    const shownX = spec.x.show !== false;
    const options = {
      width: printing ? PAPER_WIDTH : Math.max(200, host.clientWidth), height: spec.height, pxAlign: false,
      padding: [spec.top || 10, 26, shownX ? 0 : 4, 0],
      legend: { show: false }, focus: { alpha: 1 },
      scales: { x: scale(spec.x, 'x'), y: scale(spec.y, 'y') },
      axes: [
        { ...axisStyle(), show: shownX, label: spec.x.label, labelSize: 20, size: 30, space: WIDE() ? 80 : 62, values: values(spec.x), ...log(spec.x, 70) },
        { ...axisStyle(), label: spec.y.short ? null : spec.y.label, labelSize: 20, size: 62, space: 34, values: values(spec.y), ...log(spec.y, 30) },
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
const swatch = (i, symbol) => {
  const ns = 'http://www.w3.org/2000/svg', svg = document.createElementNS(ns, 'svg'), path = document.createElementNS(ns, 'path');
  svg.setAttribute('viewBox', '0 0 22 12');
  svg.setAttribute('aria-hidden', 'true');
  path.setAttribute('class', (symbol ? 'point c' : 'line d' + dashOf(i) + ' c') + (i % 8));
  path.setAttribute('d', symbol ? 'M11 6' + SYMBOLS[i % 8] : 'M0 6h22');
  svg.append(path);
  return svg;
};
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

/* ---- series ---- */
const FIRST_ROWS = 8;
const drawSeries = (figure, s) => {
  const st = stage(figure, 'Time series'), charts = [];
  const n = Math.max(1, ...s.rows.map((r) => r.mean.length));
  const x = { unit: 'ns', lo: s.start_ns, hi: s.start_ns + n * s.step_ns };
  let least = Infinity, greatest = -Infinity, positive = Infinity;
  for (const r of s.rows) {
    for (const v of r.min) { if (v < least) least = v; if (v > 0 && v < positive) positive = v; }
    for (const v of r.max) { if (v > greatest) greatest = v; if (v > 0 && v < positive) positive = v; }
  }
  const y = { label: s.y.label, unit: s.y.unit, log: s.y.log && greatest > 0, short: true };
  const setRange = () => { [y.lo, y.hi] = y.log ? roundRange(positive, greatest, true) : roundRange(least, greatest, false); };
  setRange();
  const sync = (from) => {
    st.reset.disabled = !from.zoomed();
    for (const c of charts) if (c !== from) { c.view.x = [...from.view.x]; c.refresh(); }
  };
  st.reset.addEventListener('click', () => charts.forEach((c) => c.reset()));
  const add = (row, i, last) => {
    st.plot.append(make('div', { class: 'rowname' }, row.name + (i === 0 ? ' · ' + s.y.label : '')));
    const host = st.host(row.name), marks = [...(row.marks || [])].sort((a, b) => a.x - b.x);
    const xs = row.mean.map((_, k) => s.start_ns + (k + 0.5) * s.step_ns);
    const floor = (v) => (y.log && v <= 0 ? y.lo : v);
    let panel = null;
    const chart = new Chart(host, {
      bands: true, height: last ? 150 : 112, x: { ...x, show: last, label: 'time after start' }, y,
      data: () => [xs, row.max.map(floor), row.min.map(floor), row.mean.map(floor)],
      series: () => [
        { stroke: color('c0') + '70', width: 1, points: { show: false } },
        { stroke: color('c0') + '70', width: 1, points: { show: false } },
        { stroke: color('c0'), width: 1.5, points: { show: false } },
      ],
      draw: (u, c) => {
        clip(u, (ctx) => {
          marks.forEach((m, k) => {
            const px = u.valToPos(m.x, 'x', true), top = u.bbox.top, d = dpr(), on = panel && panel.current() === k;
            ctx.fillStyle = ctx.strokeStyle = color('mark');
            ctx.lineWidth = on ? 2 * d : d;
            ctx.globalAlpha = on ? 1 : 0.6;
            ctx.beginPath(); ctx.moveTo(px, top); ctx.lineTo(px, top + u.bbox.height); ctx.setLineDash(on ? [] : [3 * d, 3 * d]); ctx.stroke(); ctx.setLineDash([]);
            ctx.globalAlpha = 1;
            ctx.beginPath(); ctx.moveTo(px - 5 * d, top); ctx.lineTo(px + 5 * d, top); ctx.lineTo(px, top + 8 * d); ctx.fill();
          });
        });
      },
      hover: (u, left) => {
        const k = Math.floor((u.posToVal(left, 'x') - s.start_ns) / s.step_ns);
        if (k < 0 || k >= row.mean.length) return null;
        return [[row.name], ` at ${human(xs[k], 'ns')}: mean `, [human(row.mean[k], y.unit)], `, ${human(row.min[k], y.unit)} to ${human(row.max[k], y.unit)}`];
      },
      say: st.say, onZoom: sync,
    });
    panel = markPanel(host, marks, 'ns', () => chart.refresh());
    clickable(host, chart, marks, panel);
    charts.push(chart);
  };
  const first = Math.min(FIRST_ROWS, s.rows.length);
  s.rows.slice(0, first).forEach((r, i) => add(r, i, i === first - 1));
  if (s.rows.length > first) {
    const more = make('button', { type: 'button' }, `Show the other ${s.rows.length - first} rows`);
    more.addEventListener('click', () => { s.rows.slice(first).forEach((r, i) => add(r, first + i, i === s.rows.length - first - 1)); more.remove(); });
    st.tools.append(more);
  }
  scaleSwitch(st, y, positive < Infinity, () => {
    setRange();
    charts.forEach((c) => { c.view.y = [y.lo, y.hi]; c.build(); });
  });
};

/* ---- lines over a numeric x: curves and percentile curves ---- */
const drawLines = (figure, spec) => {
  const st = stage(figure, spec.kind);
  const rows = spec.rows;
  const all = (pick, log) => { let a = Infinity, b = -Infinity; for (const r of rows) for (const v of r[pick]) if (!log || v > 0) { if (v < a) a = v; if (v > b) b = v; } return [a, b]; };
  const y = { ...spec.y };
  const positive = all('y', true)[0] < Infinity;
  y.log = y.log && positive;
  const setRange = () => { [y.lo, y.hi] = roundRange(...all('y', y.log), y.log); };
  setRange();
  const marks = [...(spec.marks || [])].sort((a, b) => a.x - b.x);
  let chart, panel = null;
  const shown = legend(st, rows.map((r) => r.name), false, () => chart.build());
  const host = st.host('');
  const join = () => {
    const usable = rows.map((r) => {
      const xs = [], ys = [];
      r.x.forEach((v, i) => { if ((!spec.x.log || v > 0) && (!y.log || r.y[i] > 0)) { xs.push(v); ys.push(r.y[i]); } });
      return [xs, ys];
    });
    return usable.length ? uPlot.join(usable, usable.map(() => [0, 0])) : [[], []];
  };
  chart = new Chart(host, {
    height: figure.closest('.multi') ? 250 : WIDE() ? 340 : 280, top: marks.length ? 36 : 10, x: spec.x, y, zoomY: true, data: join,
    series: () => rows.map((r, i) => ({ stroke: color('c' + (i % 8)), width: 1.6, dash: DASH[dashOf(i)], spanGaps: true, show: shown[i], points: { show: false } })),
    draw: (u) => {
      const { ctx, bbox } = u, d = dpr();
      ctx.save();
      ctx.font = `${11 * d}px system-ui, sans-serif`;
      ctx.textAlign = 'left';
      const free = [-Infinity, -Infinity];
      marks.forEach((m, k) => {
        const px = u.valToPos(m.x, 'x', true), on = panel && panel.current() === k;
        if (px < bbox.left - 1 || px > bbox.left + bbox.width + 1) return;
        ctx.strokeStyle = ctx.fillStyle = color('mark');
        ctx.lineWidth = on ? 2 * d : d;
        ctx.setLineDash(on ? [] : [3 * d, 3 * d]);
        ctx.beginPath(); ctx.moveTo(px, bbox.top); ctx.lineTo(px, bbox.top + bbox.height); ctx.stroke();
        const w = ctx.measureText(m.label).width, left = Math.min(Math.max(px - w / 2, bbox.left), bbox.left + bbox.width - w);
        const line = free.findIndex((f) => left > f);
        if (line >= 0) { free[line] = left + w + 8 * d; ctx.fillText(m.label, left, bbox.top - (7 + 13 * line) * d); }
      });
      ctx.restore();
    },
    hover: (u, left) => {
      const at = u.posToVal(left, 'x'), out = [[spec.at(at)]];
      rows.forEach((r, i) => {
        if (!shown[i] || !r.x.length) return;
        let lo = 0, hi = r.x.length - 1;
        while (hi - lo > 1) { const mid = (lo + hi) >> 1; if (r.x[mid] > at) hi = mid; else lo = mid; }
        const k = Math.abs(r.x[lo] - at) <= Math.abs(r.x[hi] - at) ? lo : hi;
        if (out.length < 9) out.push(`  ${r.name} `, [human(r.y[k], y.unit)]);
      });
      return out;
    },
    say: st.say, onZoom: (c) => { st.reset.disabled = !c.zoomed(); },
  });
  st.reset.addEventListener('click', () => chart.reset());
  panel = markPanel(st.tools, marks, spec.x.unit, () => chart.refresh());
  clickable(host, chart, marks, panel);
  scaleSwitch(st, y, positive, () => { setRange(); chart.view.y = [y.lo, y.hi]; chart.build(); });
};
const drawDistribution = (figure, d) => {
  const end = Math.max(10, ...d.rows.map((r) => Math.max(2, r.n)));
  const rows = d.rows.map((r) => {
    const last = Math.max(2, r.n);
    const q = r.quantiles.map(([p, v]) => [p >= 1 ? last : Math.min(last, Math.max(1, 1 / (1 - p))), v]).filter((v, i, a) => i === a.length - 1 || a[i + 1][0] > v[0]);
    return { name: r.name, x: q.map((v) => v[0]), y: q.map((v) => v[1]) };
  });
  drawLines(figure, {
    kind: 'Percentile curve', rows,
    x: {
      label: `share of samples at or below the ${d.value.label}`, unit: '1', log: true, lo: 1, hi: end, name: (x) => (x <= 1 ? '0 %' : percentile(x)),
      splits: (u, i, lo, hi) => { const all = [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((v) => v >= lo * 0.999 && v <= hi * 1.001); return all.length > 1 ? all : [lo, Math.sqrt(lo * hi), hi]; },
    },
    y: { label: d.value.label, unit: d.value.unit, log: true },
    at: (x) => (x >= end * 0.97 ? 'maximum' : ((1 - 1 / x) * 100).toFixed(Math.max(0, Math.ceil(Math.log10(x)) - 1)) + ' %') + ':',
  });
};
const drawCurve = (figure, c) => {
  let lo = Infinity, hi = -Infinity;
  for (const r of c.rows) for (const v of r.x) if (!c.x.log || v > 0) { if (v < lo) lo = v; if (v > hi) hi = v; }
  const log = c.x.log && lo < Infinity;
  const [a, b] = lo < hi ? [lo, hi] : roundRange(lo, hi, log);
  drawLines(figure, { kind: 'Curve', rows: c.rows, marks: c.marks, x: { label: c.x.label, unit: c.x.unit, log, lo: a, hi: b }, y: { label: c.y.label, unit: c.y.unit, log: c.y.log }, at: (v) => human(v, c.x.unit) + ':' });
};

/* ---- scatter ---- */
const SYMBOLS = ['m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z', 'm-2.7 -2.7h5.4v5.4h-5.4z', 'm0 -3.6l3.4 6h-6.8z', 'm0 -3.8l3.8 3.8l-3.8 3.8l-3.8 -3.8z', 'm-1 -3.5h2v2.5h2.5v2h-2.5v2.500h-2v-2.500h-2.500v-2h2.500z', 'm0 3.6l3.4 -6h-6.8z', 'm-3.5 -1.2h7v2.4h-7z', 'm-1.2 -3.5h2.4v7h-2.4z'];
const drawScatter = (figure, s) => {
  const st = stage(figure, 'Scatter');
  const range = (k, axis) => {
    let lo = Infinity, hi = -Infinity;
    for (const g of s.groups) for (const p of g.points) { const v = p[k]; if (!axis.log || v > 0) { if (v < lo) lo = v; if (v > hi) hi = v; } }
    const log = axis.log && lo < Infinity, [a, b] = roundRange(lo, hi, log);
    return { label: axis.label, unit: axis.unit, log, lo: a, hi: b };
  };
  const x = range(0, s.x), y = range(1, s.y);
  let chart, hit = null;
  const shown = legend(st, s.groups.map((g) => g.name), true, () => chart.build());
  const paths = SYMBOLS.map((d) => new Path2D('M0 0' + d));
  const host = st.host('');
  const nothing = () => null;
  chart = new Chart(host, {
    height: WIDE() ? 380 : 300, x, y, zoomY: true,
    data: () => [[x.lo, x.hi], [y.lo, y.hi]],
    series: () => [{ paths: nothing, points: { show: false } }],
    draw: (u) => clip(u, (ctx) => {
      const d = dpr();
      s.groups.forEach((g, i) => {
        if (!shown[i]) return;
        ctx.fillStyle = color('c' + (i % 8));
        ctx.globalAlpha = 0.72;
        for (const p of g.points) {
          ctx.setTransform(d, 0, 0, d, u.valToPos(p[0], 'x', true), u.valToPos(p[1], 'y', true));
          ctx.fill(paths[i % 8]);
        }
      });
      if (hit) {
        ctx.setTransform(d, 0, 0, d, u.valToPos(hit[0], 'x', true), u.valToPos(hit[1], 'y', true));
        ctx.globalAlpha = 1; ctx.strokeStyle = color('ink'); ctx.lineWidth = 1.5;
        ctx.beginPath(); ctx.arc(0, 0, 6, 0, 7); ctx.stroke();
      }
    }),
    hover: (u, left, top) => {
      let best = 500, found = null, name = '';
      s.groups.forEach((g, i) => {
        if (!shown[i]) return;
        for (const p of g.points) {
          const dx = u.valToPos(p[0], 'x') - left, dy = u.valToPos(p[1], 'y') - top, d2 = dx * dx + dy * dy;
          if (d2 < best) { best = d2; found = p; name = g.name; }
        }
      });
      if (found !== hit) { hit = found; u.redraw(false, false); }
      return found ? [[name], `: ${s.x.label} `, [human(found[0], s.x.unit)], `, ${s.y.label} `, [human(found[1], s.y.unit)]] : null;
    },
    say: st.say, onZoom: (c) => { st.reset.disabled = !c.zoomed(); },
  });
  st.reset.addEventListener('click', () => chart.reset());
};

/* ---- heat map ---- */
const drawMatrix = (figure, m) => {
  const st = stage(figure, 'Heat map');
  st.reset.remove();
  const host = st.host(''), canvas = make('canvas', { class: 'heatmap' });
  host.append(canvas);
  let lo = Infinity, hi = -Infinity;
  for (const r of m.values) for (const v of r) if (v !== null && (!m.cell.log || v > 0)) { if (v < lo) lo = v; if (v > hi) hi = v; }
  if (!(lo < hi)) hi = lo + 1;
  const log = m.cell.log && lo > 0, n = m.columns.length, rows = m.rows.length;
  const level = (v) => { const t = log ? Math.log(Math.max(v, lo) / lo) / Math.log(hi / lo) : (v - lo) / (hi - lo); return Math.max(0, Math.min(1, t)); };
  const left = Math.min(120, 14 + 6.4 * Math.max(...m.rows.map((r) => r.length), 4)), right = 14, top = 34, foot = 36;
  const cell = Math.max(2, Math.min(26, 560 / Math.max(1, rows))), height = top + cell * rows + foot;
  const end = m.columns[n - 1] + (n > 1 ? m.columns[n - 1] - m.columns[n - 2] : 1), begin = m.columns[0];
  let at = null;
  const draw = () => {
    const d = dpr(), width = printing ? PAPER_WIDTH : Math.max(200, host.clientWidth), w = (width - left - right) / n, ctx = canvas.getContext('2d');
    canvas.width = width * d; canvas.height = height * d; canvas.style.height = height + 'px'; canvas.style.width = width + 'px';
    ctx.setTransform(d, 0, 0, d, 0, 0);
    const ramp = Array.from({ length: 9 }, (_, i) => color('h' + i));
    const shade = (v) => ramp[Math.min(8, Math.floor(level(v) * 9))];
    const per = Math.max(1, Math.floor(1 / w));
    m.values.forEach((row, r) => {
      for (let c = 0; c < n; c += per) {
        let v = null;
        for (let k = c; k < Math.min(n, c + per); k += 1) if (row[k] !== null && (v === null || row[k] > v)) v = row[k];
        if (v === null) continue;
        ctx.fillStyle = shade(v);
        ctx.fillRect(left + c * w, top + r * cell, w * per + 0.4, cell - (cell > 5 ? 1 : 0));
      }
    });
    ctx.strokeStyle = color('rule'); ctx.strokeRect(left - 0.5, top - 0.5, width - left - right + 1, cell * rows + 1);
    ctx.fillStyle = color('soft'); ctx.font = '11px system-ui, sans-serif'; ctx.textBaseline = 'middle'; ctx.textAlign = 'right';
    const every = Math.ceil(12 / cell);
    m.rows.forEach((name, r) => { if (r % every === 0) ctx.fillText(name, left - 7, top + (r + 0.5) * cell); });
    ctx.textAlign = 'center'; ctx.textBaseline = 'top';
    const ticks = WIDE() ? 8 : 4, rough = (end - begin) / ticks, decade = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((k) => k * decade).find((k) => k >= rough) || rough;
    for (let t = Math.ceil(begin / step) * step; t <= end * (1 + 1e-9); t += step) ctx.fillText(tick(t, m.x.unit), Math.min(width - 22, left + ((t - begin) / (end - begin)) * (width - left - right)), top + cell * rows + 6);
    ctx.fillText(m.x.label, left + (width - left - right) / 2, top + cell * rows + 22);
    const bar = width - right - 9 * 14 - 62;
    ctx.textAlign = 'right'; ctx.fillText(`${m.cell.label}  ${tick(lo, m.cell.unit)}`, bar - 6, 10);
    ramp.forEach((h, i) => { ctx.fillStyle = h; ctx.fillRect(bar + 14 * i, 9, 14, 12); });
    ctx.fillStyle = color('soft'); ctx.textAlign = 'left'; ctx.fillText(tick(hi, m.cell.unit), bar + 9 * 14 + 6, 10);
    if (at) { ctx.strokeStyle = color('mark'); ctx.lineWidth = 2; ctx.strokeRect(left + at[1] * w, top + at[0] * cell, Math.max(w, 2), cell); ctx.lineWidth = 1; }
  };
  const tell = () => {
    const v = m.values[at[0]][at[1]];
    st.say([[m.rows[at[0]]], ` at ${m.x.label} ${human(m.columns[at[1]], m.x.unit)}: `, [v === null ? 'nothing seen' : human(v, m.cell.unit)]]);
    draw();
  };
  canvas.addEventListener('mousemove', (e) => {
    const w = (host.clientWidth - left - right) / n, c = Math.floor((e.offsetX - left) / w), r = Math.floor((e.offsetY - top) / cell);
    if (r >= 0 && r < rows && c >= 0 && c < n) { at = [r, c]; tell(); }
  });
  host.addEventListener('keydown', (e) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
    if (!step) return;
    e.preventDefault();
    const [r, c] = at || [0, 0];
    at = [Math.max(0, Math.min(rows - 1, r + step[0])), Math.max(0, Math.min(n - 1, c + step[1] * (e.shiftKey ? 10 : 1)))];
    tell();
  });
  draw();
  redraws.push(draw);
  new ResizeObserver(draw).observe(host);
};

/* ---- tables ---- */
const MOST_ROWS = 200;
const fill = (holder, heads, rows, remark) => {
  const head = make('tr', {}, ...heads.map((h, i) => make('th', { scope: 'col', class: i ? 'num' : null }, h)));
  const body = rows.map((r) => make('tr', {}, ...r.map((c, i) => (i ? make('td', { class: 'num' }, c) : make('th', { scope: 'row' }, c)))));
  const name = $('.scroll', holder) && $('.scroll', holder).getAttribute('aria-label');
  holder.replaceChildren(make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': name || 'Table of values' }, make('table', {}, make('thead', {}, head), make('tbody', {}, ...body))));
  if (remark) holder.append(make('p', { class: 'quiet' }, remark));
};
const longTable = (figure, d) => {
  const holder = $('.data .holder', figure);
  if (d.shape === 'series') {
    const n = Math.max(0, ...d.rows.map((r) => r.mean.length)), step = Math.max(1, Math.ceil(n / MOST_ROWS)), some = d.rows.slice(0, 8), rows = [];
    for (let k = 0; k < n; k += step) {
      rows.push([human(d.start_ns + k * d.step_ns, 'ns'), ...some.flatMap((r) => {
        const to = Math.min(k + step, r.mean.length), part = (v) => v.slice(k, to);
        return to <= k ? ['-', '-', '-'] : [Math.min(...part(r.min)), part(r.mean).reduce((a, b) => a + b, 0) / (to - k), Math.max(...part(r.max))].map((v) => human(v, d.y.unit));
      })]);
    }
    const remark = [step > 1 ? `${n} buckets, ${step} merged into each line: the extremes are kept.` : '', some.length < d.rows.length ? `${some.length} of ${d.rows.length} rows.` : ''].join(' ').trim();
    fill(holder, ['Time after start', ...some.flatMap((r) => ['least', 'mean', 'greatest'].map((w) => `${r.name} ${w}`))], rows, remark);
  } else if (d.shape === 'curve') {
    const total = d.rows.reduce((a, r) => a + r.x.length, 0), step = Math.max(1, Math.ceil(total / MOST_ROWS)), rows = [];
    for (const r of d.rows) for (let k = 0; k < r.x.length; k += step) rows.push([r.name, human(r.x[k], d.x.unit), human(r.y[k], d.y.unit)]);
    fill($('.points', holder) || holder, ['Curve', d.x.label, d.y.label], rows, step > 1 ? `${rows.length} of ${total} points, evenly chosen.` : '');
  }
};
const sortable = (table) => {
  $$('thead th', table).forEach((th, column) => {
    const button = make('button', { type: 'button' }, ...th.childNodes);
    th.replaceChildren(button);
    th.setAttribute('aria-sort', 'none');
    button.addEventListener('click', () => {
      const down = th.getAttribute('aria-sort') === 'descending' || (th.getAttribute('aria-sort') === 'none' && !th.classList.contains('num'));
      $$('th[aria-sort]', table).forEach((o) => o.setAttribute('aria-sort', 'none'));
      th.setAttribute('aria-sort', down ? 'ascending' : 'descending');
      const key = (tr) => { const c = tr.cells[column]; return c.dataset.v === undefined ? null : Number(c.dataset.v); };
      const body = table.tBodies[0], rows = [...body.rows];
      rows.sort((a, b) => {
        const x = key(a), y = key(b);
        const order = x !== null && y !== null ? x - y : x !== null ? (down ? -1 : 1) : y !== null ? (down ? 1 : -1) : a.cells[column].textContent.localeCompare(b.cells[column].textContent, 'en', { numeric: true });
        return down ? order : -order;
      });
      body.append(...rows);
    });
  });
};
/* ---- metrics: rows of a group are made when it is unfolded or searched ---- */
const metricRow = (m, names) => {
  const cell = (text, v) => make('td', v === undefined ? {} : { 'data-v': String(v) }, text);
  const [a, b] = m.ci ? [m.ci.low, m.ci.high].map((v) => human(v, m.unit).match(/^(.*?)( \S+)?$/).slice(1)) : [];
  const ends = m.ci ? (a[1] === b[1] ? `[${a[0]}, ${b[0]}]${a[1] || ''}` : `[${a.join('')}, ${b.join('')}]`) : null;
  const quality = m.quality + (m.flags && m.flags.length ? ' ' + m.flags.join(' ') : '') + (m.why ? ': ' + m.why : '');
  return make('tr', {}, ...names.map((k) => make('th', { scope: 'row' }, String((m.params || {})[k] ?? ''))),
    m.value == null ? cell('-') : cell(human(m.value, m.unit), m.value), ends ? cell(ends, m.ci.high - m.ci.low) : cell('-'),
    cell(String(m.n), m.n), make('td', { class: 'q' }, m.estimator), make('td', { class: 'q' }, quality));
};
const metricGroups = (metrics) => {
  const groups = $$('details.mg').map((el) => {
    const own = metrics.filter((m) => m.id === el.dataset.id), names = [...new Set(own.flatMap((m) => Object.keys(m.params || {})))];
    let rows = null;
    const build = () => {
      if (rows) return rows;
      rows = own.map((m) => metricRow(m, names));
      const head = [...names.map((k) => [k]), ['Value', 1], ['Interval', 1], ['n', 1], ['Estimator'], ['Quality']].map(([t, num]) => make('th', { scope: 'col', class: num ? 'num' : null }, t));
      const table = make('table', { class: 'rows' }, make('thead', {}, make('tr', {}, ...head)), make('tbody', {}, ...rows));
      const old = $('table.rows', el), box = old ? old.parentElement : make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': el.dataset.id + ', rows' });
      box.replaceChildren(table);
      if (!old) el.lastElementChild.append(box);
      $$('.static', el).forEach((s) => s.remove());
      sortable(table);
      return rows;
    };
    el.addEventListener('toggle', () => { if (el.open) build(); });
    if (el.open) build();
    const texts = own.map((m) => [m.id, ...Object.entries(m.params || {}).map(([k, v]) => `${k}=${v}`), m.estimator, m.quality, ...(m.flags || []), m.why || ''].join(' ').toLowerCase());
    return { el, build, texts };
  });
  const box = $('#metric-search'), count = $('#metric-count'), all = $('#metric-all');
  if (!box) return;
  box.addEventListener('input', () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const g of groups) {
      const hits = g.texts.map((t) => words.every((w) => t.includes(w))), some = hits.includes(true);
      n += hits.filter(Boolean).length;
      g.el.hidden = !some;
      g.el.open = words.length > 0 && some;
      g.el.classList.toggle('found', words.length > 0);
      if (g.el.open) g.build().forEach((tr, i) => { tr.hidden = !hits[i]; });
    }
    if (!words.length) groups.forEach((g) => $$('tr[hidden]', g.el).forEach((tr) => { tr.hidden = false; }));
    count.textContent = words.length ? `${n} of ${metrics.length}` : '';
    all.textContent = 'Unfold all';
  });
  all.addEventListener('click', () => {
    const open = all.textContent === 'Unfold all';
    groups.forEach((g) => { g.el.open = open; });
    all.textContent = open ? 'Fold all' : 'Unfold all';
  });
};

/* ---- tables with colors: the exact value of the cell under the pointer or the arrow keys ---- */
const heatTable = (figure) => {
  const table = $('table.heat', figure), region = table.parentElement, readout = make('output', { class: 'readout', 'aria-live': 'polite' });
  $('.heatkey', figure).after(make('div', { class: 'tools' }, readout));
  const heads = [...table.tHead.rows[0].cells], rows = [...table.tBodies[0].rows], what = $('.heatkey', figure).firstChild.textContent.replace(/^Cells: |\..*$/g, '');
  let at = null;
  const tell = (r, c) => {
    if (at) rows[at[0]].cells[at[1]].classList.remove('at');
    at = [r, c];
    const cell = rows[r].cells[c];
    cell.classList.add('at');
    readout.replaceChildren(`${rows[r].cells[0].textContent}, ${heads[c].textContent}: `, make('b', {}, cell.title || 'not measured'), cell.classList.contains('none') ? '' : ` ${what}`);
    return cell;
  };
  table.addEventListener('mouseover', (e) => {
    const cell = e.target.closest('td');
    if (cell) tell(cell.parentElement.sectionRowIndex, cell.cellIndex);
  });
  region.addEventListener('keydown', (e) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
    if (!step) return;
    e.preventDefault();
    const [r, c] = at || [0, 1 - step[1]], clamp = (v, lo, hi) => Math.max(lo, Math.min(hi, v));
    tell(clamp(at ? r + step[0] : 0, 0, rows.length - 1), clamp(at ? c + step[1] : 1, 1, heads.length - 1)).scrollIntoView({ block: 'nearest', inline: 'nearest' });
  });
};

/* ---- packed lists, as written by the program: see packed.rs of the data crate ---- */
const unpack = (list) => {
  if (Array.isArray(list)) return list;
  const out = Array.from({ length: list.n }, () => ({}));
  for (const [name, c] of Object.entries(list.columns)) {
    const of = c.of && unpack(c.of);
    let k = 0;
    const items = Array.isArray(c) ? c : 'all' in c ? out.map(() => c.all)
      : c.at ? c.at.map((i) => of[i])
      : c.runs ? c.runs.flatMap((v, i) => (i % 2 ? Array(v).fill(of[c.runs[i - 1]]) : []))
      : c.has ? c.has.flatMap((v, i) => Array.from({ length: v }, () => (i % 2 ? undefined : of[k++])))
      : unpack(c);
    items.forEach((v, i) => { if (v !== undefined) out[i][name] = v; });
  }
  return out;
};

/* ---- start ---- */
const DRAW = { series: drawSeries, distribution: drawDistribution, curve: drawCurve, scatter: drawScatter, matrix: drawMatrix };
const start = () => {
  const record = JSON.parse($('#machmeter-record').textContent);
  applyTheme(theme);
  nameTheme();
  $$('.js').forEach((el) => { el.hidden = false; });
  let drawn = 0;
  for (const figure of $$('figure[data-dataset]')) {
    const d = record.datasets[Number(figure.dataset.dataset)];
    if (!$('.plot', figure) || !DRAW[d.shape]) continue; // what has no interactive form stays as it was drawn
    const still = $('.plot', figure).innerHTML;
    try {
      DRAW[d.shape](figure, d);
      drawn += 1;
      const data = $('details.data', figure);
      data.addEventListener('toggle', () => longTable(figure, d), { once: true });
    } catch (e) {
      failed(e);
      $('.plot', figure).innerHTML = still;
    }
  }
  $$('table.sortable').forEach(sortable);
  $$('figure.grid-table').forEach(heatTable);
  metricGroups(unpack(record.metrics));
  root.dataset.charts = String(drawn);
};
try { start(); } catch (e) { failed(e); }
root.dataset.ready = errors ? 'failed' : 'ok';
})();
