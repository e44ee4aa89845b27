// Work and waiting of each rank in each iteration.

function addHeatMap() {
  const data = pictures.heat_map;
  if (!data || data.columns.length === 0) return;
  const {rows, columns} = data;
  const margin = {left: textWidth(`rank ${rows[rows.length - 1].first}`) + 12, right: 28, top: 22, bottom: 30};
  const rowHeight = Math.max(1, Math.min(22, Math.floor(260 / rows.length)));
  const height = rows.length * rowHeight;
  const gap = margin.top + margin.bottom + height;

  // Shades are of what most cells have; the few beyond are as dark as can be.
  function shadeDomain(quantity) {
    const known = data[quantity].filter(cell => cell !== null).sort((a, b) => a - b);
    if (known.length === 0) return [0, 1];
    const low = known[0];
    const high = known[Math.min(known.length - 1, Math.floor(known.length * 0.98))];
    // Differences of a few percent are no dark cells, and a rank that waits less than all others is lighter than they are.
    return [low * data.unit, Math.max(high, low * 1.25 + 1e-3) * data.unit];
  }

  function paint(canvas, quantity, domain, width) {
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const shades = d3.range(256).map(i => d3.rgb(d3.interpolateRgb(colorOf('panel'), colorOf(quantity))(i / 255)));
    const small = element('canvas', {width: columns.length, height: rows.length});
    const context = small.getContext('2d');
    const image = context.createImageData(columns.length, rows.length);
    data[quantity].forEach((cell, index) => {
      if (cell === null) return;
      const share = (cell * data.unit - domain[0]) / (domain[1] - domain[0]);
      const shade = shades[Math.max(0, Math.min(255, Math.round(share * 255)))];
      image.data.set([shade.r, shade.g, shade.b, 255], index * 4);
    });
    context.putImageData(image, 0, 0);
    const target = canvas.getContext('2d');
    target.imageSmoothingEnabled = false;
    target.drawImage(small, 0, 0, canvas.width, canvas.height);
  }

  // Draws what light and dark stand for.
  function drawShades(half, left, quantity, domain, more) {
    const [low, high] = [formatSeconds(domain[0]), formatSeconds(domain[1]) + more];
    const gradient = half.append('linearGradient').attr('id', `shades-${quantity}`);
    gradient.append('stop').attr('stop-color', colorOf('panel'));
    gradient.append('stop').attr('offset', 1).attr('stop-color', colorOf(quantity));
    const bar = left + textWidth(low) + 6;
    half.append('text').attr('class', 'faint').attr('x', left).attr('y', -6).text(low);
    half.append('rect').attr('x', bar).attr('y', -15).attr('width', 60).attr('height', 10).attr('fill', `url(#shades-${quantity})`).attr('stroke', colorOf('line'));
    half.append('text').attr('class', 'faint').attr('x', bar + 66).attr('y', -6).text(high);
  }

  function drawHalf(node, group, quantity, top, x) {
    const inner = x.range()[1];
    const domain = shadeDomain(quantity);
    const canvas = element('canvas', {'aria-hidden': 'true', 'data-quantity': quantity,
      'style': `position: absolute; left: ${margin.left}px; top: ${top}px`});
    paint(canvas, quantity, domain, inner);
    node.append(canvas);
    const half = group.append('g').attr('transform', `translate(0,${top - margin.top})`);
    const name = quantity === 'work' ? 'Work' : inner < 420 ? 'Waiting' : 'Waiting for others';
    half.append('text').attr('y', -6).attr('font-weight', 700).text(name);
    drawShades(half, textWidth(name, true) + 12, quantity, domain, inner < 420 ? '' : ' and more');
    addXAxis(half, {x, innerWidth: inner, innerHeight: height, formatX: formatIteration});
    const labelled = Math.ceil(14 / rowHeight);
    rows.forEach((row, index) => {
      if (index % labelled !== 0) return;
      half.append('text').attr('class', 'faint').attr('x', -6).attr('y', index * rowHeight + Math.max(rowHeight / 2, 5) + 4)
          .attr('text-anchor', 'end').text(`rank ${row.first}`);
    });
    for (const rank of data.named) {
      const row = rowOfRank(rank);
      if (row < 0) continue;
      half.append('text').attr('class', 'named').attr('x', inner + 4).attr('y', (row + 0.5) * rowHeight + 4)
          .style('fill', colorOf('bad')).text('\u25c0').append('title').text(`rank ${rank} is named above`);
    }
  }

  // Above the canvases: what is selected.
  function drawSelected(node, width, x) {
    const overlay = d3.select(node).append('svg').attr('aria-hidden', 'true').attr('width', width).attr('height', 2 * gap)
        .style('position', 'absolute').style('left', 0).style('top', 0);
    const row = rowOfRank(selection.rank);
    for (const top of [margin.top, margin.top + gap]) {
      const group = overlay.append('g').attr('transform', `translate(${margin.left},${top})`);
      if (row >= 0) {
        group.append('rect').attr('class', 'selected-row').attr('y', row * rowHeight - 1).attr('width', x.range()[1])
            .attr('height', rowHeight + 2).attr('fill', 'none').attr('stroke', colorOf('selected')).attr('stroke-width', 2);
      }
      shadeSpan(group, x, height);
    }
  }

  function labelOf(row, column) {
    const of = rows[row].first === rows[row].last ? '' : ' (the longest of them)';
    return `${formatRow(rows[row])}, ${formatIterations(columns[column].first, columns[column].last)}${of}\n` +
        `work ${formatSeconds(cellSeconds('work', row, column))}, waiting ${formatSeconds(cellSeconds('waiting', row, column))}`;
  }

  function draw(node, width) {
    const inner = width - margin.left - margin.right;
    const x = iterationScale(columns, inner);
    const group = addSvg(node, width, 2 * gap, margin);
    drawHalf(node, group, 'work', margin.top, x);
    drawHalf(node, group, 'waiting', margin.top + gap, x);
    drawSelected(node, width, x);
    // One mark a cell, made when it is looked at.
    const marks = new Proxy({length: rows.length * columns.length}, {
      get(target, key) {
        if (key === 'length') return target.length;
        const index = Number(key);
        if (!(index >= 0 && index < target.length)) return undefined;
        const [row, column] = [Math.floor(index / columns.length), index % columns.length];
        return {
          x: margin.left + x((columns[column].first + columns[column].last + 1) / 2),
          y: margin.top + (row + 0.5) * rowHeight,
          label: labelOf(row, column),
          select: {rank: rows[row].first},
        };
      },
    });
    return {
      marks,
      perRow: columns.length,
      span: place => columns[columnAt(columns, x, place - margin.left)],
      locate(placeX, placeY) {
        const row = Math.floor((placeY % gap - margin.top) / rowHeight);
        const inside = placeX >= margin.left && placeX < margin.left + inner && row >= 0 && row < rows.length && placeY < 2 * gap;
        return inside ? row * columns.length + columnAt(columns, x, placeX - margin.left) : -1;
      },
    };
  }

  addFigure({
    id: 'heat_map',
    title: 'Ranks and iterations',
    caption: 'Each row is a rank, or several, each column one iteration, or several. A rank that is darker than the others in ' +
        'work, and lighter in waiting, holds them up. \u25c0 marks ranks that the answers name.',
    draw,
    table: () => ({
      columns: ['first rank', 'last rank', 'host', 'first iteration', 'last iteration', 'work s', 'waiting s'],
      rows: rows.flatMap((row, r) => columns.map((column, c) => [row.first, row.last, row.host, column.first, column.last,
        cellSeconds('work', r, c), cellSeconds('waiting', r, c)])),
    }),
  });
}

adders.push(addHeatMap);
