package invoke

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// MediaType is a media type of the door's responses.
type MediaType string

// The media types of the door. A request for JSONL is answered as NDJSON.
const (
	JSON   MediaType = "application/json"
	SSE    MediaType = "text/event-stream"
	NDJSON MediaType = "application/x-ndjson"
	JSONL  MediaType = "application/jsonl"
)

// Streams reports whether m is the type of a stream.
func (m MediaType) Streams() bool { return m == SSE || m == NDJSON || m == JSONL }

// rank orders types with the same q-value: the most specific first.
func (m MediaType) rank() int {
	switch m {
	case NDJSON:
		return 0
	case SSE, JSONL:
		return 1
	default:
		return 2
	}
}

// Accept is a parsed Accept header. The zero value is a request without one: it accepts everything.
type Accept struct {
	// Wanted are the supported types that the header names, by descending q-value.
	Wanted []MediaType
	// Refused are the supported types that the header names with q=0.
	Refused []MediaType
	// Any is set by the range */*, AnyText by text/*, AnyApplication by application/*.
	Any, AnyText, AnyApplication bool
}

// maxRanges is the maximum number of ranges that are read; further ranges are ignored.
const maxRanges = 64

// ParseAccept parses the values of an Accept header according to RFC 9110: q-values, upper and lower case, parameters. At
// most 64 ranges are read. Unsupported types and malformed ranges are ignored; it never fails.
func ParseAccept(values ...string) Accept {
	var a Accept
	quality := map[MediaType]int{}
	ranges := 0
	for r := range rangesOf(values) {
		if ranges++; ranges > maxRanges {
			break
		}
		name, q := mediaRange(r)
		switch m := MediaType(name); m {
		case JSON, SSE, NDJSON, JSONL:
			if earlier, ok := quality[m]; ok && earlier >= q {
				continue // a type that is named twice has the higher q-value
			}
			quality[m] = q
			a.Refused = without(a.Refused, m)
			a.Wanted = without(a.Wanted, m)
			if q == 0 {
				a.Refused = append(a.Refused, m)
				continue
			}
			a.Wanted = append(a.Wanted, m)
		case "*/*":
			a.Any = a.Any || q > 0
		case "text/*":
			a.AnyText = a.AnyText || q > 0
		case "application/*":
			a.AnyApplication = a.AnyApplication || q > 0
		}
	}
	slices.SortStableFunc(a.Wanted, func(x, y MediaType) int {
		return cmp.Or(quality[y]-quality[x], x.rank()-y.rank())
	})
	return a
}

func without(list []MediaType, m MediaType) []MediaType {
	return slices.DeleteFunc(list, func(x MediaType) bool { return x == m })
}

// allows reports whether a range with a wildcard includes a type.
func (a Accept) allows(m MediaType) bool {
	if slices.Contains(a.Refused, m) {
		return false
	}
	return a.Any || a.AnyText && m == SSE || a.AnyApplication && m != SSE
}

// mediaRange returns a range's name in lower case and its q-value in thousandths. A malformed q-value counts as 1.
func mediaRange(r string) (name string, q int) {
	q = 1000
	first := true
	for part := range splitOutsideQuotes(r, ';') {
		part = strings.Trim(part, " \t")
		if first {
			first = false
			name = strings.ToLower(part)
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		if strings.EqualFold(strings.TrimSpace(key), "q") {
			q = thousandths(strings.TrimSpace(value))
		}
	}
	return name, q
}

// thousandths parses a q-value: 0 or 1 with up to three decimals, at most 1.
func thousandths(s string) int {
	const malformed = 1000
	whole, fraction, _ := strings.Cut(s, ".")
	if whole != "0" && whole != "1" || len(fraction) > 3 {
		return malformed
	}
	q := 0
	for i := range 3 {
		q *= 10
		if i < len(fraction) {
			if fraction[i] < '0' || fraction[i] > '9' {
				return malformed
			}
			q += int(fraction[i] - '0')
		}
	}
	if whole == "1" {
		return malformed // 1 or more
	}
	return q
}

// rangesOf returns the ranges of an Accept header.
func rangesOf(values []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, v := range values {
			for r := range splitOutsideQuotes(v, ',') {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// splitOutsideQuotes splits at each occurrence of a byte outside of quoted strings.
func splitOutsideQuotes(s string, at byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		quoted, from := false, 0
		for i := 0; i < len(s); i++ {
			switch b := s[i]; {
			case quoted && b == '\\':
				i++
			case b == '"':
				quoted = !quoted
			case b == at && !quoted:
				if !yield(s[from:i]) {
					return
				}
				from = i + 1
			}
		}
		yield(s[from:])
	}
}
