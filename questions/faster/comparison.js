// Two sides of a comparison, such as before and after: the runs of both, and the interval of each measurement.

const VERDICTS = {FASTER: 'good', SAME: 'tolerance', SLOWER: 'bad', CANNOT_TELL: 'unknown'};

function addComparison() {
  const data = pictures.comparison;
  if (!data) return;
  const {verdict} = data;
  const results = [...(verdict.answer.measurement === '' ? [] : [verdict.answer]), ...verdict.measurements];
  if (results.length === 0) return;
  const [before, after] = data.sides;
  const ratioName = `${after} / ${before}`;

  function drawRuns(group, inner, margin, marks) {
    const sides = [[before, data.seconds_a, 'total'], [after, data.seconds_b, 'work']];
    const all = sides.flatMap(([, seconds]) => seconds);
    const room = (d3.max(all) - d3.min(all)) / 10 || d3.max(all) / 100;
    const x = d3.scaleLinear().domain([d3.min(all) - room, d3.max(all) + room]).range([0, inner]);
    addXAxis(group, {x, innerWidth: inner, innerHeight: 84, formatX: formatSeconds});
    sides.forEach(([name, seconds, meaning], side) => {
      const top = side * 42;
      group.append('text').attr('x', -8).attr('y', top + 24).attr('text-anchor', 'end').text(fit(`${name}: ${data.measurement}`, margin.left - 12));
      seconds.forEach((value, index) => {
        const y = top + 6 + 30 * (index + 0.5) / seconds.length;
        group.append('circle').attr('class', side === 0 ? 'run before' : 'run after').attr('cx', x(value)).attr('cy', y).attr('r', 4)
            .attr('fill', colorOf(meaning)).attr('fill-opacity', 0.75);
        marks.push({x: margin.left + x(value), y: margin.top + y, label: `${name}, run ${index + 1}: ${formatSeconds(value)}`});
      });
    });
  }

  function drawIntervals(group, inner, margin, top, marks) {
    const known = results.filter(result => result.ratio !== null);
    const ends = [1 / (1 + verdict.margin), 1 + verdict.margin, ...known.flatMap(result => [result.low || result.ratio, result.high || result.ratio])];
    const room = (d3.max(ends) - d3.min(ends)) / 12;
    const x = d3.scaleLinear().domain([d3.min(ends) - room, d3.max(ends) + room]).range([0, inner]);
    const height = results.length * 24;
    const part = group.append('g').attr('transform', `translate(0,${top})`);
    part.append('rect').attr('class', 'same').attr('x', x(1 / (1 + verdict.margin))).attr('width', x(1 + verdict.margin) - x(1 / (1 + verdict.margin)))
        .attr('height', height).attr('fill', colorOf('idle')).attr('fill-opacity', 0.5);
    part.append('line').attr('x1', x(1)).attr('x2', x(1)).attr('y2', height).attr('stroke', colorOf('faint'));
    addXAxis(part, {x, innerWidth: inner, innerHeight: height, formatX: ratio => formatChange(ratio)});
    results.forEach((result, index) => {
      const y = index * 24 + 12;
      const color = colorOf(VERDICTS[result.verdict]);
      part.append('text').attr('x', -8).attr('y', y + 4).attr('text-anchor', 'end')
          .attr('font-weight', selection.measurement === result.measurement ? 700 : 400).text(fit(result.measurement, margin.left - 12));
      if (result.low !== null) {
        part.append('line').attr('class', 'interval').attr('data-name', result.measurement).attr('x1', x(result.low)).attr('x2', x(result.high))
            .attr('y1', y).attr('y2', y).attr('stroke', color).attr('stroke-width', 4);
      }
      if (result.ratio !== null) part.append('circle').attr('class', 'ratio').attr('cx', x(result.ratio)).attr('cy', y).attr('r', 6).attr('fill', color);
      marks.push({
        x: margin.left + (result.ratio === null ? 0 : x(result.ratio)), y: margin.top + top + y, select: {measurement: result.measurement},
        label: `${result.measurement}: ${enumWords(result.verdict)}` + (result.ratio === null ? '' : `\n${ratioName} ${formatChange(result.ratio, 2)}`) +
            (result.low === null ? '' : ` (${formatPercent(verdict.confidence, 0)}: ${formatChange(result.low, 2)} to ${formatChange(result.high, 2)})`),
      });
    });
  }

  addFigure({
    id: 'comparison',
    title: before === 'before' ? 'Before and after' : `${before} and ${after}`,
    caption: `Above, each run, the first at the top; below, ${ratioName} with its ${formatPercent(verdict.confidence, 0)} interval: in the grey band it is the same.`,
    draw(node, width) {
      const labels = [`${before}: ${data.measurement}`, `${after}: ${data.measurement}`, ...results.map(result => result.measurement)];
      const margin = {left: Math.min(width * 0.4, Math.max(...labels.map(label => textWidth(label, true))) + 16), right: 24, top: 4, bottom: 30};
      const top = 84 + 36;
      const marks = [];
      const inner = width - margin.left - margin.right;
      const group = addSvg(node, width, top + results.length * 24 + margin.top + margin.bottom, margin);
      drawRuns(group, inner, margin, marks);
      drawIntervals(group, inner, margin, top, marks);
      node.append(legend([['total', `run of ${before}`], ['work', `run of ${after}`], ...Object.entries(VERDICTS).map(([name, meaning]) => [meaning, enumWords(name)])]));
      return {marks};
    },
    table: () => ({
      columns: ['measurement', 'verdict', ratioName, 'low', 'high', `${before} s`, `${after} s`],
      rows: results.map(result => [result.measurement, enumWords(result.verdict), result.ratio, result.low, result.high, result.seconds_a, result.seconds_b]),
    }),
  });
}

adders.push(addComparison);
