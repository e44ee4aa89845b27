// Horizontal bars: what would be saved, and where a device's time goes.

// rows: [{label, isHeading, parts: [{value, meaning, name}], low, high, text, title, select}]; low and high are an interval.
// In a row's parts, values are lengths one after the other. Texts take so much of the width at most.
function drawBars(node, width, rows, {formatX, maximum, minimum = 0, textShare = 0.3}) {
  const widest = texts => Math.max(0, ...texts);
  const margin = {
    left: Math.min(width * 0.45, widest(rows.map(row => textWidth(row.label, true))) + 16),
    right: Math.min(width * textShare, widest(rows.map(row => textWidth(row.text))) + 14),
    top: 4,
    bottom: 26,
  };
  const rowHeight = 22;
  const inner = width - margin.left - margin.right;
  const height = rows.length * rowHeight;
  const group = addSvg(node, width, height + margin.top + margin.bottom, margin);
  const x = d3.scaleLinear().domain([minimum, maximum || 1]).range([0, inner]);
  addXAxis(group, {x, innerWidth: inner, innerHeight: height, formatX});
  const marks = [];
  rows.forEach((row, index) => {
    const line = group.append('g').attr('class', 'bar').attr('data-label', row.label).attr('transform', `translate(0,${index * rowHeight})`);
    const isSelected = row.select && Object.keys(row.select).every(key => selection[key] === row.select[key]);
    line.append('text').attr('x', -8).attr('y', 15).attr('text-anchor', 'end').attr('font-weight', isSelected || row.isHeading ? 700 : 400)
        .text(fit(row.label, margin.left - 12));
    let start = 0;
    for (const part of row.parts) {
      line.append('rect').attr('class', `part-${part.meaning}`).attr('x', x(Math.min(start, start + part.value))).attr('y', 3)
          .attr('width', Math.abs(x(start + part.value) - x(start))).attr('height', rowHeight - 6).attr('fill', colorOf(part.meaning));
      start += part.value;
    }
    if (row.low !== undefined && row.low !== null) {
      line.append('path').attr('class', 'interval').attr('stroke', colorOf('text')).attr('stroke-width', 1.5).attr('fill', 'none')
          .attr('d', `M${x(row.low)},7V15M${x(row.low)},11H${x(row.high)}M${x(row.high)},7V15`);
    }
    const end = x(Math.max(start, row.high || 0)) + 6;
    line.append('text').attr('class', 'faint').attr('x', end).attr('y', 15).text(fit(row.text, inner + margin.right - end));
    if (isSelected) {
      line.append('rect').attr('class', 'selected-row').attr('x', -margin.left + 1).attr('width', width - 2).attr('height', rowHeight)
          .attr('fill', 'none').attr('stroke', colorOf('selected')).attr('stroke-width', 2);
    }
    marks.push({x: margin.left + x(start), y: margin.top + (index + 0.5) * rowHeight, label: row.title, select: row.select});
  });
  return {
    marks,
    locate(_, y) {
      const index = Math.floor((y - margin.top) / rowHeight);
      return index >= 0 && index < rows.length ? index : -1;
    },
  };
}

// "rank 3" selects that rank, an operation its measurement.
function selectByName(name) {
  const rank = /^rank (\d+)/.exec(name);
  return rank ? {rank: Number(rank[1])} : {measurement: name};
}

function addWhatIf() {
  const data = pictures.what_if;
  if (!data) return;
  const parts = [...data.repairs, ...data.together];
  if (parts.length === 0) return;
  const isKnown = part => part.high - part.low < 2;
  const rows = () => parts.map(part => ({
    label: `without ${part.name}`,
    parts: [{value: Math.max(0, part.saved), meaning: 'good'}],
    low: isKnown(part) ? Math.max(-0.1, part.low) : null,
    high: isKnown(part) ? Math.min(1, part.high) : null,
    text: formatPercent(part.saved, 0),
    title: `without ${part.name} ${data.step_word} takes ${formatSeconds(part.seconds)} instead of ${formatSeconds(data.measured_seconds)}: ` +
        `${formatPercent(part.saved)} less` + (isKnown(part) ? ` (95 %: ${formatPercent(part.low)} to ${formatPercent(part.high)})` : ''),
    select: selectByName(part.name),
  }));
  addFigure({
    id: 'what_if',
    title: 'What would be saved',
    caption: `Share of ${data.step_word} (${formatSeconds(data.measured_seconds)}) that goes if only this is mended, with its 95 % ` +
        `interval. By a replay, which is off by ${formatPercent(data.replay_error, 2)} of what was measured.`,
    draw: (node, width) => {
      const values = parts.flatMap(part => [part.saved, isKnown(part) ? Math.min(1, part.high) : 0]);
      return drawBars(node, width, rows(), {formatX: value => formatPercent(value, 0), maximum: Math.max(0.05, ...values),
        minimum: Math.min(0, ...parts.map(part => isKnown(part) ? Math.max(-0.1, part.low) : 0))});
    },
    table: () => ({
      columns: ['mended', 'seconds', 'saved share', 'low', 'high', 'slowdown'],
      rows: [...parts, ...data.by_rank, ...data.by_operation].map(part =>
        [part.name, part.seconds, part.saved, part.low, part.high, part.slowdown]),
    }),
  });
}

function addDeviceTime() {
  const data = pictures.device_time;
  if (!data || data.ranks.length === 0) return;
  const kinds = [['compute', 'work', 'compute'], ['exposed_communication', 'waiting', 'communication that nothing hides'],
    ['exposed_copies', 'memory', 'copies that nothing hides'], ['idle', 'idle', 'idle']];
  addFigure({
    id: 'device_time',
    title: 'Where the time of the devices goes',
    caption: 'Of each moment the first of these counts that there is.',
    draw(node, width) {
      const result = drawBars(node, width, data.ranks.map(rank => ({
        label: `rank ${rank.rank}`,
        parts: kinds.map(([key, meaning]) => ({value: rank[key], meaning})),
        text: formatSeconds(rank.seconds),
        title: `rank ${rank.rank}\n` + kinds.map(([key, , name]) => `${name} ${formatSeconds(rank[key])}`).join('\n'),
        select: {rank: rank.rank},
      })), {formatX: formatSeconds, maximum: Math.max(...data.ranks.map(rank => rank.seconds))});
      node.append(legend(kinds.map(([, meaning, name]) => [meaning, name])));
      return result;
    },
    table: () => ({
      columns: ['rank', 'seconds', ...kinds.map(([, , name]) => `${name} s`)],
      rows: data.ranks.map(rank => [rank.rank, rank.seconds, ...kinds.map(([key]) => rank[key])]),
    }),
  });
}
