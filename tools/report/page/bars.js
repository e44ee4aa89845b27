// Horizontal bars.

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
    const keys = Object.keys(row.select || {});
    const isSelected = keys.length > 0 && keys.every(key => selection[key] === row.select[key]);
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
