/* ---- heat map ---- */
const drawMatrix = (figure, m) => {
  const st = stage(figure, 'Heat map');
  st.reset.remove();
  const host = st.host(''), canvas = make('canvas', { class: 'heatmap' });
  host.append(canvas);
  let [lo, hi] = m.range || [Infinity, -Infinity];
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
