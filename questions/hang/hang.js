// Draws where the ranks stand.

function addHang() {
  const data = pictures.hang;
  if (!data || data.ranks.length === 0) return;
  const meanings = {WAITS: 'waiting', WORKS: 'work', FINISHED: 'good', UNKNOWN: 'unknown'};
  const isBlamed = rank => data.culprits.includes(rank.rank);
  const stateOf = rank => isBlamed(rank) ? 'bad' : meanings[rank.state] || 'unknown';
  const nameOf = rank => rank.state.toLowerCase();
  const place = rank => rank.place ? `, ${formatSeconds(rank.seconds)} in ${rank.place}` : '';

  function labelOf(rank) {
    return `${formatRank(rank.rank, rank.host)}: ${nameOf(rank)}${isBlamed(rank) ? ', to blame' : ''}${place(rank)}` +
        (rank.iteration >= 0 ? `\niteration ${rank.iteration}` : '') + (rank.last_completed ? `, completed ${rank.last_completed}` : '');
  }

  // Draws for a few ranks how long each has been where it is.
  function drawTimes(node, width) {
    return drawBars(node, width, data.ranks.map(rank => ({
      label: formatRank(rank.rank, rank.host),
      isHeading: isBlamed(rank),
      parts: [{value: rank.seconds || 0, meaning: stateOf(rank)}],
      text: (rank.place ? `${nameOf(rank)} in ${rank.place}` : nameOf(rank)) + (isBlamed(rank) ? ': to blame' : ''),
      title: labelOf(rank),
      select: {rank: rank.rank},
    })), {formatX: formatSeconds, maximum: d3.max(data.ranks, rank => rank.seconds), textShare: 0.55});
  }

  function drawRanks(node, width) {
    const size = Math.max(26, Math.max(...data.ranks.map(rank => textWidth(String(rank.rank)))) + 12);
    const margin = {left: 4, right: 4, top: 4, bottom: 4};
    const perRow = Math.max(1, Math.floor((width - 8) / size));
    const group = addSvg(node, width, Math.ceil(data.ranks.length / perRow) * size + 8, margin);
    const marks = data.ranks.map((rank, index) => {
      const [x, y] = [(index % perRow) * size, Math.floor(index / perRow) * size];
      const cell = group.append('g').attr('class', 'rank').attr('data-rank', rank.rank).attr('transform', `translate(${x},${y})`);
      cell.append('rect').attr('width', size - 3).attr('height', size - 3).attr('rx', 3).attr('fill', colorOf(stateOf(rank)))
          .attr('stroke', selection.rank === rank.rank ? colorOf('selected') : 'none').attr('stroke-width', 3);
      cell.append('text').attr('x', (size - 3) / 2).attr('y', size / 2 + 3).attr('text-anchor', 'middle').style('fill', inkOn(colorOf(stateOf(rank)))).text(rank.rank);
      return {
        x: margin.left + x + size / 2, y: margin.top + y + size / 2, select: {rank: rank.rank},
        label: labelOf(rank),
      };
    });
    return {marks, perRow};
  }

  function draw(node, width) {
    const hasTimes = data.ranks.length <= 32 && data.ranks.some(rank => rank.place && rank.seconds > 0);
    const result = (hasTimes ? drawTimes : drawRanks)(node, width);
    node.append(legend([['bad', 'to blame'], ['waiting', 'waits'], ['work', 'works'], ['good', 'finished'], ['unknown', 'other, or not known']]));
    return result;
  }

  addFigure({
    id: 'hang',
    title: 'Where the ranks stand',
    caption: 'By the last that each rank wrote into its flight recorder, and for how long.',
    draw,
    table: () => ({
      columns: ['rank', 'host', 'state', 'to blame', 'iteration', 'last completed', 'in', 'for s'],
      rows: data.ranks.map(rank => [rank.rank, rank.host, nameOf(rank), isBlamed(rank) ? 'yes' : 'no', rank.iteration, rank.last_completed, rank.place, rank.seconds]),
    }),
  });
}

adders.push(addHang);
