package fold

import "github.com/turntable-streams/turntable/internal/rows/foldrow"

// partsOf returns the numbers of the parts that a row names.
func partsOf(r *foldrow.Row) (numbers []uint32) {
	for _, t := range r.GetOpen() {
		numbers = appendParts(t, numbers)
	}
	for _, p := range r.GetClosed() {
		numbers = append(numbers, p.Part)
	}
	return numbers
}

// appendParts appends the numbers of the parts that a turn names.
func appendParts(t *foldrow.Turn, numbers []uint32) []uint32 {
	for _, x := range t.Parts {
		for i := range x.Count {
			numbers = append(numbers, x.First+i)
		}
	}
	for _, h := range t.Held {
		numbers = append(numbers, h.Part)
	}
	for _, run := range t.Runs {
		numbers = appendParts(run, numbers)
	}
	for _, q := range t.Queue {
		numbers = append(numbers, q.Part)
	}
	return append(numbers, t.Request)
}
