package turn

import (
	"bytes"

	"github.com/turntable-streams/turntable/topics"
)

// span is the position of an element in an array.
type span struct{ from, to int }

// elementsOf returns the positions of the elements of a JSON array that are not null.
func elementsOf(array topics.Raw) (spans []span) {
	scan(array, func(s span) { spans = append(spans, s) })
	return spans
}

// messages counts the elements of a JSON array that are not null.
func messages(array topics.Raw) (count uint32) {
	scan(array, func(span) { count++ })
	return count
}

// scan calls found for the elements of a JSON array that are not null. The array must be valid JSON, which codecs guarantee,
// so only brackets, commas and quotes are examined. This is fast because a history is counted at every response.
func scan(array topics.Raw, found func(span)) {
	depth := 0
	from := -1 // position of the current element; -1 before its first byte
	end := func(at int) {
		if from >= 0 && array[from] != 'n' {
			found(span{from, from + len(bytes.TrimRight(array[from:at], " \t\r\n"))})
		}
		from = -1
	}
	for i := 0; i < len(array); i++ {
		b := array[i]
		if depth == 1 && from < 0 && b > ' ' && b != ',' && b != ']' {
			from = i
		}
		switch b {
		case '"':
			i += quote(array[i+1:])
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				end(i)
			}
		case ',':
			if depth == 1 {
				end(i)
			}
		}
	}
}

// quote returns the length of a text up to and including its closing quote.
func quote(text []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return len(text)
		}
		at += n + 1
		escapes := 0
		for at-2-escapes >= 0 && text[at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}
