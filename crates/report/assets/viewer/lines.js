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
  const limits = (spec.limits || []).filter((m) => m.y != null);
  const name = y.label;
  const setRange = () => {
    const [a, b] = all('y', y.log);
    [y.lo, y.hi] = roundRange(Math.min(a, ...limits.map((m) => m.y)), Math.max(b, ...limits.map((m) => m.y)), y.log);
    y.label = !y.log && y.lo > 0 ? `${name} (axis from ${tick(y.lo, y.unit)})` : name;
  };
  setRange();
  const edges = (spec.marks || []).filter((m) => m.edge).map((m) => m.x);
  const apart = (a, b) => edges.length && (b > 4 * a || edges.some((e) => a <= e && e < b));
  const marks = [...(spec.marks || [])].sort((a, b) => a.x - b.x);
  let chart, panel = null;
  const shown = legend(st, rows.map((r) => r.name), false, () => chart.build());
  const host = st.host('');
  const join = () => {
    const usable = rows.map((r) => {
      const xs = [], ys = [];
      r.x.forEach((v, i) => {
        if ((spec.x.log && !(v > 0)) || (y.log && !(r.y[i] > 0))) return;
        const last = xs[xs.length - 1];
        /* A null between two points keeps the line from joining them, also over points of other rows (mode 2 below). */
        if (xs.length && apart(last, v)) { xs.push(Math.sqrt(last * v)); ys.push(null); }
        xs.push(v); ys.push(r.y[i]);
      });
      return [xs, ys];
    });
    return usable.length ? uPlot.join(usable, usable.map(() => [1, 2])) : [[], []];
  };
  chart = new Chart(host, {
    height: figure.closest('.multi') ? 250 : WIDE() ? 340 : 280, top: marks.length ? 36 : 10, x: spec.x, y, zoomY: true, data: join,
    series: () => rows.map((r, i) => ({ stroke: color('c' + (i % 8)), width: 1.6, dash: DASH[dashOf(i)], show: shown[i], points: { show: r.x.length < 12, size: 6, fill: color('c' + (i % 8)) } })),
    draw: (u) => {
      const { ctx, bbox } = u, d = dpr();
      ctx.save();
      ctx.font = `${11 * d}px system-ui, sans-serif`;
      ctx.textAlign = 'left'; ctx.textBaseline = 'alphabetic';
      limits.forEach((m) => {
        const py = u.valToPos(m.y, 'y', true);
        if (py < bbox.top || py > bbox.top + bbox.height) return;
        ctx.strokeStyle = ctx.fillStyle = color('mark');
        ctx.lineWidth = d; ctx.setLineDash([6 * d, 4 * d]);
        ctx.beginPath(); ctx.moveTo(bbox.left, py); ctx.lineTo(bbox.left + bbox.width, py); ctx.stroke();
        ctx.fillText(m.label, bbox.left + 6 * d, py + (limits.every((l) => m.y <= l.y) ? 12 : -4) * d);
      });
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
      splits: (u, i, lo, hi) => {
        const all = [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((v) => v >= lo * 0.999 && v <= hi * 1.001), room = u.bbox.width / dpr() / Math.log(hi / lo);
        let end = -Infinity;
        const apart = all.filter((v) => {
          const at = Math.log(v / lo) * room, half = 3 * percentile(v).length, fits = at - half > end || !(room > 0);
          if (fits) end = at + half + 3;
          return fits;
        });
        return apart.length > 1 ? apart : [lo, Math.sqrt(lo * hi), hi];
      },
    },
    y: { label: d.value.label, unit: d.value.unit, log: true }, limits: d.limits,
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
