"""
Watch predictions as labels arrive
==================================

Each year of trapping is a batch. Evidence against the predictions adds up, and its guarantee holds
however often one looks: above the line there is an alarm. See :doc:`/how-to/monitor`.
"""

import mcllo

data = mcllo.datasets.load_portal_rodents(groups=None)
watch = mcllo.Monitor.start(classes=data.train.classes)
for rows, columns in (
    (data.train, data.train_columns),
    (data.holdout, data.holdout_columns),
):
    for year in sorted(set(columns["year"].tolist())):
        own = columns["year"] == year
        y = [rows.classes[code] for code in rows.codes[own]]
        status = watch.add(rows.probs[own], y, batch=str(year))

panels = mcllo.plot.monitor(watch)
print(status)
