package progress

import "slices"

// Span is a range of offsets, both ends included.
type Span struct{ First, Last int64 }

// spans are disjoint ranges in ascending order.
type spans []Span

// has reports whether a range contains offset.
func (s spans) has(offset int64) bool {
	i, _ := slices.BinarySearchFunc(s, offset, func(span Span, offset int64) int {
		switch {
		case span.Last < offset:
			return -1
		case span.First > offset:
			return 1
		}
		return 0
	})
	return i < len(s) && s[i].First <= offset
}

// add returns the ranges with another one. Ranges that overlap or touch become one.
func (s spans) add(span Span) spans {
	from := 0
	for from < len(s) && s[from].Last+1 < span.First {
		from++
	}
	to := from
	for to < len(s) && s[to].First <= span.Last+1 {
		span = Span{min(span.First, s[to].First), max(span.Last, s[to].Last)}
		to++
	}
	return slices.Replace(s, from, to, span)
}

// from returns the ranges without the offsets below offset.
func (s spans) from(offset int64) spans {
	var kept spans
	for _, span := range s {
		if span.Last >= offset {
			kept = append(kept, Span{max(span.First, offset), span.Last})
		}
	}
	return kept
}
