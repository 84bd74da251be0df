package turn

import (
	"bytes"

	"github.com/turntable-streams/turntable/topics"
)

// messages counts the elements of a JSON array that are not null. The array must be valid JSON, as all that a codec
// yields is: so brackets, commas and quotes are all that has to be looked at. A history is counted at every response.
func messages(array topics.Raw) uint32 {
	count, depth := uint32(0), 0
	element := byte(0) // how the element that is being read begins, 0 before it does
	end := func() {
		if element != 0 && element != 'n' {
			count++
		}
		element = 0
	}
	for i := 0; i < len(array); i++ {
		b := array[i]
		if depth == 1 && element == 0 && b > ' ' && b != ',' && b != ']' {
			element = b
		}
		switch b {
		case '"':
			i += quote(array[i+1:])
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				end()
			}
		case ',':
			if depth == 1 {
				end()
			}
		}
	}
	return count
}

// quote is the length of a text up to its closing quote, which it includes.
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
