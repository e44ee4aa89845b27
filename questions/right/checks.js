// Draws how each cross-check came out.

const OUTCOMES = {
  BITWISE_EQUAL: {meaning: 'good', height: 0.3, name: 'equal bit for bit'},
  WITHIN_TOLERANCE: {meaning: 'tolerance', height: 0.5, name: 'within tolerance'},
  NOT_COMPARED: {meaning: 'unknown', height: 0.7, name: 'NOT COMPARED'},
  DIFFERENT: {meaning: 'bad', height: 1, name: 'DIFFER'},
  ALL_DISTINCT: {meaning: 'good', height: 0.3, name: 'of their own on all ranks'},
};
// The outcome of tensors of which each rank is to have its own.
const NOT_DISTINCT = {meaning: 'bad', height: 1, name: 'THE SAME on several ranks'};

function outcomeOf(subject, check) {
  if (subject === 'distinct' && check.outcome === 'DIFFERENT') return NOT_DISTINCT;
  return OUTCOMES[check.outcome] || OUTCOMES.NOT_COMPARED;
}

const SUBJECTS = {replicas: 'replicas', reference: 'reference', distinct: 'own data'};

function addChecks() {
  const data = pictures.checks;
  if (!data) return;
  const all = data.series.flatMap(series => series.checks);
  const isBad = check => check.outcome === 'DIFFERENT';

  function labelOf(subject, check) {
    let text = `${SUBJECTS[subject]}, ${formatIterations(check.first, check.last)}: ${outcomeOf(subject, check).name}`;
    if (isBad(check)) {
      text += `\nfirst in ${check.tensor}, of ${check.different_tensors} tensors` +
          (check.ranks.length > 0 ? `; on rank ${check.ranks.join(', ')}` : '; nobody is to blame');
    }
    return check.reason ? `${text}\n${check.reason}` : text;
  }

  function draw(node, width) {
    const margin = {left: 84, right: 16, top: 8, bottom: 26};
    const laneHeight = 44;
    const inner = width - margin.left - margin.right;
    const height = laneHeight * data.series.length;
    const group = addSvg(node, width, height + margin.top + margin.bottom, margin);
    const first = d3.min(all, check => check.first);
    const last = d3.max(all, check => check.last);
    // Each is as wide as the distance to the next check.
    const step = Math.max(1, ...data.series.map(series => series.checks.length > 1 ? d3.min(d3.pairs(series.checks), ([a, b]) => b.first - a.last) : 1));
    const x = d3.scaleLinear().domain([first, last + step]).range([0, inner]);
    addXAxis(group, {x, innerWidth: inner, innerHeight: height, formatX: formatIteration});
    const marks = [];
    data.series.forEach((series, lane) => {
      const bottom = (lane + 1) * laneHeight - 4;
      group.append('text').attr('x', -8).attr('y', bottom - 12).attr('text-anchor', 'end').text(SUBJECTS[series.subject]);
      series.checks.forEach((check, index) => {
        const next = index + 1 < series.checks.length ? series.checks[index + 1].first : check.last + step;
        const {meaning, height: share} = outcomeOf(series.subject, check);
        const tall = share * (laneHeight - 8);
        const isFaded = !isInSpan(check.first, check.last) ||
            (selection.rank !== null && isBad(check) && !check.ranks.includes(selection.rank));
        group.append('rect').attr('class', `check ${check.outcome}`).attr('data-iteration', check.first).attr('data-subject', series.subject)
            .attr('x', x(check.first)).attr('y', bottom - tall).attr('height', tall)
            .attr('width', Math.max(1, x(next) - x(check.first) - (series.checks.length > 150 ? 0 : 1)))
            .attr('fill', colorOf(meaning)).attr('opacity', isFaded ? 0.35 : 1);
        marks.push({
          x: margin.left + (x(check.first) + x(next)) / 2, y: margin.top + bottom - tall / 2, label: labelOf(series.subject, check),
          select: {first: check.first, last: check.last, rank: check.ranks.length > 0 ? check.ranks[0] : null},
        });
      });
    });
    shadeSpan(group, x, height);
    const found = new Set(data.series.flatMap(series => series.checks.map(check => outcomeOf(series.subject, check))));
    node.append(legend([...Object.values(OUTCOMES), NOT_DISTINCT].filter(outcome => found.has(outcome)).map(({meaning, name}) => [meaning, name])));
    return {marks};
  }

  addFigure({
    id: 'checks',
    title: 'Cross-checks over iterations',
    caption: 'A bar for each check, the higher the worse.',
    draw,
    table: () => ({
      columns: ['subject', 'first iteration', 'last iteration', 'outcome', 'first tensor', 'different tensors', 'ranks', 'reason'],
      rows: data.series.flatMap(series => series.checks.map(check => [SUBJECTS[series.subject], check.first, check.last,
        outcomeOf(series.subject, check).name, check.tensor, check.different_tensors, check.ranks.join(' '), check.reason])),
    }),
  });
}

adders.push(addChecks);
