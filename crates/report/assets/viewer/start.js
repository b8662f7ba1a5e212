/* The record as the page carries it: zlib in base64. */
const inflated = async (text) => {
  const stream = new DecompressionStream('deflate'), writer = stream.writable.getWriter();
  const written = writer.write(Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0))).then(() => writer.close());
  const reader = stream.readable.getReader(), words = new TextDecoder();
  let out = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    out += words.decode(value, { stream: true });
  }
  await written;
  return out + words.decode();
};

const DRAW = { series: drawSeries, distribution: drawDistribution, curve: drawCurve, scatter: drawScatter, matrix: drawMatrix };
const drawFigure = (figure, d) => {
  const plot = $('.plot', figure), data = $('details.data', figure);
  if (d.shape === 'cost_table') {
    $$('tbody tr', figure).forEach((tr, r) => d.rows[r].cells.forEach((v, c) => { if (typeof v === 'number') tr.cells[c + 1].dataset.v = String(v); }));
  }
  if (data) unfolded(data, () => data.append(...TABLE[d.shape]($('h3, h4', figure).textContent, d, !!figure.closest('.multi'))));
  if (!plot || !DRAW[d.shape]) return 0; // what has no interactive form stays as it was drawn
  const still = plot.innerHTML;
  try {
    DRAW[d.shape](figure, d);
    return 1;
  } catch (e) {
    failed(e);
    plot.innerHTML = still;
    return 0;
  }
};
const reveal = () => {
  const target = /^#[a-z][\w-]*$/.test(location.hash) && $(location.hash);
  if (!target) return;
  for (let el = target; el; el = el.parentElement) if (el.tagName === 'DETAILS') el.open = true;
  const own = $('details.more', target);
  if (own && target.id === 'notes') own.open = true;
  target.scrollIntoView({ behavior: 'instant' });
};
const needs = (met) => $$('.need').forEach((el) => { el.hidden = met; });
/* The section that is being read is marked in the list of sections. */
const follow = () => {
  const links = $$('.side a'), seen = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const e of entries) if (e.isIntersecting) seen.add(e.target.id); else seen.delete(e.target.id);
    const first = links.find((a) => seen.has(a.hash.slice(1)));
    links.forEach((a) => { if (a === first) a.setAttribute('aria-current', 'true'); else a.removeAttribute('aria-current'); });
  });
  links.forEach((a) => { const el = $(a.hash); if (el) observer.observe(el); });
};
const start = async () => {
  applyTheme(theme);
  nameTheme();
  follow();
  themeButton.hidden = false;
  if (!('DecompressionStream' in window)) return;
  needs(true);
  const record = JSON.parse(await inflated($('#machmeter-record').textContent));
  $$('.js,[data-js]').forEach((el) => { el.hidden = false; });
  let charts = 0;
  $$('figure[data-dataset]').forEach((el) => { charts += drawFigure(el, record.datasets[Number(el.dataset.dataset)]); });
  $$('table.sortable').forEach(sortable);
  $$('figure.grid-table').forEach(heatTable);
  metricList(record.metrics);
  factList(record.machine);
  quietChecks(record.checks);
  root.dataset.charts = String(charts);
  /* The charts moved what the address names; what is folded opens. */
  reveal();
  window.addEventListener('hashchange', reveal);
};
start().catch((e) => { failed(e); needs(false); }).then(() => { root.dataset.ready = errors ? 'failed' : 'ok'; });
