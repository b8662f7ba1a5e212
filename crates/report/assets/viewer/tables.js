/* The tables under the charts, and tables that can be sorted. */
const MOST_ROWS = 200;
const TOP_POINTS = 20;
const scrolled = (name, table) => make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': name }, table);
const heading = (texts) => make('thead', {}, make('tr', {}, ...texts.map(([t, num]) => make('th', { scope: 'col', class: num ? 'num' : null }, t))));
const tableOf = (name, heads, rows, remark) => {
  const shown = remark ? rows : rows.slice(0, MOST_ROWS);
  const body = shown.map((r) => make('tr', {}, ...r.map((c, i) => (i ? make('td', { class: 'num' }, c) : make('th', { scope: 'row' }, c)))));
  const note = remark || (rows.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${rows.length} rows.` : '');
  const out = [scrolled(`${name}: ${heads.slice(0, 2).join(', ')}`, make('table', {}, heading(heads.map((h, i) => [h, i])), make('tbody', {}, ...body)))];
  return note ? [...out, make('p', { class: 'quiet' }, note)] : out;
};
/* Builds what a folded part shows, once it is unfolded. */
const unfolded = (el, build) => { if (el.open) build(); else el.addEventListener('toggle', build, { once: true }); };
const least = (v) => v.reduce((a, b) => Math.min(a, b), Infinity), greatest = (v) => v.reduce((a, b) => Math.max(a, b), -Infinity), mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;
const three = (v, unit) => (v.length ? [least(v), mean(v), greatest(v)].map((x) => human(x, unit)) : ['-', '-', '-']);
const threeOf = (word) => ['least', 'mean', 'greatest'].map((w) => `${word} ${w}`);
const TABLE = {
  series: (name, d) => {
    const n = Math.max(0, ...d.rows.map((r) => r.mean.length)), step = Math.max(1, Math.ceil(n / MOST_ROWS)), some = d.rows.slice(0, 8), rows = [];
    for (let k = 0; k < n; k += step) {
      rows.push([human(d.start_ns + k * d.step_ns, 'ns'), ...some.flatMap((r) => {
        const part = (v) => v.slice(k, k + step);
        return k >= r.mean.length ? ['-', '-', '-'] : [least(part(r.min)), mean(part(r.mean)), greatest(part(r.max))].map((v) => human(v, d.y.unit));
      })]);
    }
    const remark = [step > 1 ? `${n} buckets, ${step} merged into each line: the extremes are kept.` : '', some.length < d.rows.length ? `${some.length} of ${d.rows.length} rows.` : ''].join(' ').trim();
    return tableOf(name, ['Time after start', ...some.flatMap((r) => threeOf(r.name))], rows, remark);
  },
  distribution: (name, d, small) => {
    const asked = small ? [0.5, 0.9, 0.99, 0.999, 1] : [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1];
    /* A percentile beyond the samples is not known; the maximum always is. */
    const at = (r, p) => { const q = p >= 1 || (1 - p) * r.n >= 1 ? r.quantiles.find((v) => v[0] >= p - 1e-12) : null; return q ? human(q[1], d.value.unit) : '-'; };
    return tableOf(name, ['Name', 'samples', ...asked.map((p) => (p === 0 ? 'least' : p === 1 ? 'max' : `${+(p * 100).toFixed(6)} %`))], d.rows.map((r) => [r.name, String(r.n), ...asked.map((p) => at(r, p))]));
  },
  curve: (name, d) => {
    const total = d.rows.reduce((a, r) => a + r.x.length, 0), step = Math.max(1, Math.ceil(total / MOST_ROWS)), rows = [];
    for (const r of d.rows) for (let k = 0; k < r.x.length; k += step) rows.push([r.name, human(r.x[k], d.x.unit), human(r.y[k], d.y.unit)]);
    const marks = d.marks && d.marks.length ? tableOf(name, ['Mark', d.x.label, 'What it is'], d.marks.map((m) => [m.label, human(m.x, d.x.unit), m.detail || ''])) : [];
    return [...marks, ...tableOf(name, ['Curve', d.x.label, d.y.label], rows, step > 1 ? `${rows.length} of ${total} points, evenly chosen.` : '')];
  },
  scatter: (name, d) => {
    const of = (g, k) => g.points.map((p) => p[k]);
    const groups = d.groups.map((g) => [g.name, String(g.points.length), ...three(of(g, 0), d.x.unit), ...three(of(g, 1), d.y.unit)]);
    const points = d.groups.flatMap((g) => g.points.map((p) => [g.name, ...p])).sort((a, b) => b[1] - a[1]), top = points.slice(0, TOP_POINTS);
    return [...tableOf(name, ['Group', 'points', ...threeOf(d.x.label), ...threeOf(d.y.label)], groups),
      ...tableOf(name, ['Group', d.x.label, d.y.label], top.map((p) => [p[0], human(p[1], d.x.unit), human(p[2], d.y.unit)]), `The ${top.length} largest of ${points.length} points by ${d.x.label}.`)];
  },
  matrix: (name, d) => tableOf(name, ['Row', 'cells seen', 'least', 'mean', 'greatest', 'greatest at'], d.rows.map((r, i) => {
    const seen = d.values[i].filter((v) => v !== null), at = d.values[i].indexOf(greatest(seen));
    return [r, String(seen.length), ...three(seen, d.cell.unit), at < 0 ? '-' : human(d.columns[at], d.x.unit)];
  })),
  decades: (name, d) => {
    const figure = (v) => (v == null ? '-' : human(v, d.value.unit)), shift = d.value.unit === 'ns' ? 9 : 0;
    return tableOf(name, ['operation', 'value', 'from', 'to', 'ten to power'], d.rows.map((r) => [r.name, figure(r.value), figure(r.low), figure(r.high), r.value > 0 ? (Math.log10(r.value) - shift).toFixed(2) : '-']));
  },
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
