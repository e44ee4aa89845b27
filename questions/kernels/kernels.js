// Draws what limits the ops: FLOP/s against FLOPs a byte, below the device's roofs; and the ops that take
// most time.

function addKernels() {
  const data = pictures.kernels;
  if (!data || data.ops.length === 0) return;
  addOps(data);
  addRoofline(data);
}

const LIMITS = {compute: 'work', memory: 'memory'};
const LEGEND = [['work', 'compute limits it'], ['memory', 'memory limits it'], ['total', 'not known']];

function describeOp(op) {
  return `${op.name}\n${formatPercent(op.share)} of the time, ${formatSeconds(op.seconds)} on all ranks` +
      (op.flops_per_second === null ? '' : `\n${formatLarge(op.flops_per_second)}FLOP/s, ${formatNumber(op.flops_per_byte)} FLOPs a byte`) +
      (op.of_peak === null ? '' : `\n${formatPercent(op.of_peak)} of the ${op.limited_by} roof`);
}

function addOps({ops}) {
  const shown = ops.slice(0, 15);
  addFigure({
    id: 'kernels',
    title: 'Ops that take most time',
    caption: `The first ${shown.length} of ${ops.length}, by their share of all kernels' time.`,
    draw(node, width) {
      const result = drawBars(node, width, shown.map(op => ({
        label: op.name,
        parts: [{value: op.share, meaning: LIMITS[op.limited_by] || 'total'}],
        text: formatPercent(op.share),
        title: describeOp(op),
        select: {measurement: op.name},
      })), {formatX: share => formatPercent(share, 0), maximum: Math.max(...shown.map(op => op.share))});
      node.append(legend(LEGEND));
      return result;
    },
    table: () => ({
      columns: ['op', 'share', 'seconds', 'FLOP/s', 'FLOPs a byte', 'of peak', 'limited by'],
      rows: ops.map(op => [op.name, op.share, op.seconds, op.flops_per_second, op.flops_per_byte, op.of_peak, op.limited_by]),
    }),
  });
}

function addRoofline({ops, roofs}) {
  const known = ops.filter(op => op.flops_per_second > 0 && op.flops_per_byte > 0);
  if (known.length === 0) return;
  const peaks = roofs ? Object.entries(roofs.flops_per_second).filter(([, flops]) => flops > 0) : [];

  function draw(node, width) {
    const margin = {left: 76, right: 24, top: 12, bottom: 40};
    const height = 300;
    const inner = width - margin.left - margin.right;
    const group = addSvg(node, width, height + margin.top + margin.bottom, margin);
    const highest = Math.max(...known.map(op => op.flops_per_second), ...peaks.map(([, flops]) => flops));
    const knees = roofs ? peaks.map(([, flops]) => flops / roofs.bytes_per_second) : [];
    const x = d3.scaleLog().domain([Math.min(...known.map(op => op.flops_per_byte)) / 3, 3 * Math.max(...known.map(op => op.flops_per_byte), ...knees)])
        .range([0, inner]);
    const y = d3.scaleLog().domain([Math.min(...known.map(op => op.flops_per_second)) / 3, highest * 1.5]).range([height, 0]).clamp(true);
    group.append('g').attr('class', 'axis').attr('transform', `translate(0,${height})`).call(d3.axisBottom(x).ticks(6, '~g'));
    group.append('g').attr('class', 'axis').call(d3.axisLeft(y).ticks(5, '~s'));
    group.append('text').attr('class', 'faint').attr('x', inner).attr('y', height + 34).attr('text-anchor', 'end').text('FLOPs a byte');
    group.append('text').attr('class', 'faint').attr('x', 6).attr('y', 6).text('FLOP/s');
    for (const [name, flops] of peaks) {
      const knee = flops / roofs.bytes_per_second;
      const points = [[x.domain()[0], x.domain()[0] * roofs.bytes_per_second], [knee, flops], [x.domain()[1], flops]];
      group.append('path').attr('class', 'roof').attr('data-name', name).attr('fill', 'none').attr('stroke', colorOf('faint'))
          .attr('d', d3.line().x(point => x(point[0])).y(point => y(point[1]))(points));
      group.append('text').attr('class', 'faint').attr('x', inner).attr('y', y(flops) - 5).attr('text-anchor', 'end')
          .text(`${name}: ${formatLarge(flops)}FLOP/s`);
    }
    group.selectAll('circle.op').data(known).join('circle').attr('class', 'op').attr('data-name', op => op.name)
        .attr('cx', op => x(op.flops_per_byte)).attr('cy', op => y(op.flops_per_second)).attr('r', op => 4 + 24 * Math.sqrt(op.share))
        .attr('fill', op => colorOf(LIMITS[op.limited_by] || 'total')).attr('fill-opacity', 0.55)
        .attr('stroke', op => selection.measurement === op.name ? colorOf('selected') : colorOf('page'))
        .attr('stroke-width', op => selection.measurement === op.name ? 3 : 1);
    return {marks: known.map(op => ({
      x: margin.left + x(op.flops_per_byte), y: margin.top + y(op.flops_per_second), label: describeOp(op), select: {measurement: op.name},
    }))};
  }

  addFigure({
    id: 'roofline',
    title: 'Roofline',
    caption: 'Ops of which FLOPs and bytes are known; the larger, the more time they take.' +
        (roofs ? ` Roofs of ${roofs.device}, by its data sheet.` : ' The device is not known, so there are no roofs.'),
    draw(node, width) {
      const result = draw(node, width);
      node.append(legend(LEGEND));
      return result;
    },
    table: () => ({
      columns: ['op', 'FLOPs a byte', 'FLOP/s', 'of peak', 'limited by', 'share'],
      rows: known.map(op => [op.name, op.flops_per_byte, op.flops_per_second, op.of_peak, op.limited_by, op.share]),
    }),
  });
}

adders.push(addKernels);
