// Lists all that is known of each measurement.

function addMeasurements() {
  const data = pictures.measurements;
  if (!data) return;
  addFigure({
    id: 'measurements',
    title: 'Measurements of all ranks',
    caption: 'Seconds of an iteration, over the ranks that have the measurement; percentiles are of single intervals.',
    plain: true,
    draw(node) {
      node.replaceChildren(tableElement(messageTable(data.rows)));
      return {marks: []};
    },
    table: () => messageTable(data.rows),
  });
}

adders.push(addMeasurements);
