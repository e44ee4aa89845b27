// Draws what would be saved.

function addWhatIf() {
  const data = pictures.what_if;
  if (!data) return;
  const parts = [...data.repairs, data.best_repairs_together, data.communication_overlapped].filter(part => part);
  if (parts.length === 0) return;
  const isKnown = part => part.saved_high - part.saved_low < 2;
  const rows = () => parts.map(part => ({
    label: `without ${part.name}`,
    parts: [{value: Math.max(0, part.saved), meaning: 'good'}],
    low: isKnown(part) ? Math.max(-0.1, part.saved_low) : null,
    high: isKnown(part) ? Math.min(1, part.saved_high) : null,
    text: formatPercent(part.saved, 0),
    title: `without ${part.name} ${data.step_word} takes ${formatSeconds(part.seconds)} instead of ${formatSeconds(data.measured_seconds)}: ` +
        `${formatPercent(part.saved)} less` + (isKnown(part) ? ` (95 %: ${formatPercent(part.saved_low)} to ${formatPercent(part.saved_high)})` : ''),
    select: part.ranks.length === 1 ? {rank: part.ranks[0]} : part.operation ? {measurement: part.operation} : {},
  }));
  addFigure({
    id: 'what_if',
    title: 'What would be saved',
    caption: `Share of ${data.step_word} (${formatSeconds(data.measured_seconds)}) that goes if only this is mended, with its 95 % ` +
        `interval. By a replay, which is off by ${formatPercent(data.replay_error, 2)} of what was measured.`,
    draw: (node, width) => {
      const values = parts.flatMap(part => [part.saved, isKnown(part) ? Math.min(1, part.saved_high) : 0]);
      return drawBars(node, width, rows(), {formatX: value => formatPercent(value, 0), maximum: Math.max(0.05, ...values),
        minimum: Math.min(0, ...parts.map(part => isKnown(part) ? Math.max(-0.1, part.saved_low) : 0))});
    },
    table: () => ({
      columns: ['mended', 'seconds', 'saved share', 'low', 'high', 'slowdown'],
      rows: [...parts, ...data.by_rank, ...data.by_operation].map(part =>
        [part.name, part.seconds, part.saved, part.saved_low, part.saved_high, part.slowdown]),
    }),
  });
}

adders.push(addWhatIf);
