// Where a search leads first: a name and what to do with it, then what it means, studies and changes last.
// Sphinx calls `score` for each page that was found; the numbers below it are its own defaults.
const SEARCH_PLACES = [
  [/^reference\/api\//, 12],
  [/^(how-to|tutorials|reference|gallery)\//, 8],
  [/^explanation\//, 4],
  [/^studies\//, -8],
  [/^(changes|contributing|fuzzing|architecture|overview)$/, -12],
];
var Scorer = { // no const: the page declares it once more
  score: ([page, , , , score]) => {
    const place = SEARCH_PLACES.find(([pattern]) => pattern.test(page));
    return score + (place ? place[1] : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
