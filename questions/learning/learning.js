// Learning curves of two sets of runs: their means and spans, and below the difference with its band and the margin.

function addLearning() {
  const data = pictures.learning;
  if (!data) return;
  const ends = interval => [interval.low, interval.high];
  const all = interval => [interval.value, interval.low, interval.high];
  const format = interval => `${interval.value} (${interval.low} to ${interval.high})`;

  // One chart of areas and lines over x. bands and lines: [meaning, points => [low, high] or value].
  function drawPanel(group, top, inner, height, {x, points, bands, lines, values, title}) {
    const part = group.append('g').attr('transform', `translate(0,${top})`);
    const y = d3.scaleLinear().domain(d3.extent(values)).nice().range([height, 0]);
    part.append('g').attr('class', 'axis').call(d3.axisLeft(y).ticks(5).tickSizeOuter(0));
    part.append('text').attr('class', 'faint').attr('y', -6).text(title);
    for (const [name, meaning, band] of bands) {
      part.append('path').attr('class', `band ${name}`).attr('fill', colorOf(meaning)).attr('fill-opacity', 0.25)
          .attr('d', d3.area().x(point => x(point.x)).y0(point => y(band(point)[0])).y1(point => y(band(point)[1]))(points));
    }
    for (const [name, meaning, value] of lines) {
      part.append('path').attr('class', `curve ${name}`).attr('fill', 'none').attr('stroke', colorOf(meaning)).attr('stroke-width', 2)
          .attr('d', d3.line().x(point => x(point.x)).y(point => y(value(point)))(points));
    }
    return {part, y};
  }

  data.metrics.forEach((metric, index) => addFigure({
    id: index === 0 ? 'learning' : `learning-${index}`,
    title: `${metric.name}: ${enumWords(metric.kind)}`,
    caption: 'Above, the mean of the runs of each side and what they span; below, B less A with the band that holds the truth at all ' +
        `points at once (${formatPercent(1 - metric.level, 1)}), and in grey the margin.` +
        (metric.differs_from === null ? '' : ` Red: from ${data.x_name} ${metric.differs_from} to ${metric.differs_to} the band excludes zero.`),
    draw(node, width) {
      const margin = {left: 76, right: 16, top: 20, bottom: 36};
      const inner = width - margin.left - margin.right;
      const points = metric.points;
      const group = addSvg(node, width, 420 + margin.top + margin.bottom, margin);
      const x = d3.scaleLinear().domain([points[0].x, points[points.length - 1].x]).range([0, inner]);
      const curves = drawPanel(group, 0, inner, 210, {x, points, title: metric.name,
        bands: [['a', 'total', point => ends(point.a)], ['b', 'work', point => ends(point.b)]],
        lines: [['a', 'total', point => point.a.value], ['b', 'work', point => point.b.value]],
        values: points.flatMap(point => [...all(point.a), ...all(point.b)])});
      const {part, y} = drawPanel(group, 256, inner, 164, {x, points, title: 'B less A',
        bands: [['margin', 'idle', point => [-point.margin, point.margin]], ['difference', 'work', point => ends(point.difference)]],
        lines: [['difference', 'work', point => point.difference.value]],
        values: [0, ...points.flatMap(point => [...all(point.difference), point.margin, -point.margin])]});
      part.append('line').attr('x2', inner).attr('y1', y(0)).attr('y2', y(0)).attr('stroke', colorOf('faint'));
      const excluded = points.filter(point => point.difference.low > 0 || point.difference.high < 0);
      part.selectAll('circle').data(excluded).join('circle').attr('class', 'excluded').attr('r', 4).attr('fill', colorOf('bad'))
          .attr('cx', point => x(point.x)).attr('cy', point => y(point.difference.value));
      addXAxis(part, {x, innerWidth: inner, innerHeight: 164, formatX: value => d3.format(value < 1000 ? '~g' : '~s')(value)});
      node.append(legend([['total', 'A'], ['work', 'B'], ['idle', 'margin'], ['bad', 'differs']]));
      return {marks: points.map(point => ({
        x: margin.left + x(point.x), y: margin.top + curves.y(point.b.value),
        label: `${data.x_name} ${point.x}\nA ${format(point.a)}\nB ${format(point.b)}\n` +
            `B less A ${format(point.difference)}`,
      }))};
    },
    table: () => ({
      columns: [data.x_name, 'A', 'A low', 'A high', 'B', 'B low', 'B high', 'B less A', 'low', 'high', 'margin'],
      rows: metric.points.map(point => [point.x, ...all(point.a), ...all(point.b), ...all(point.difference), point.margin]),
    }),
  }));
}

adders.push(addLearning);
