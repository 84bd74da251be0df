package toolcall

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// escape is the length of an escaped UTF-16 code unit, such as \ud83d.
const escape = len(`\ud83d`)

// WellFormed returns JSON text in which every half of a surrogate pair without its other half, and every byte that is not
// UTF-8, is replaced by U+FFFD. Providers reject a request that contains one.
func WellFormed(v topics.Raw) topics.Raw {
	if !utf8.Valid(v) {
		v = bytes.ToValidUTF8(v, []byte("\uFFFD"))
	}
	if !bytes.Contains(v, []byte(`\u`)) {
		return v
	}
	var fixed topics.Raw
	done := 0 // bytes of v that are in fixed
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' {
			continue
		}
		switch half := surrogate(v[i:]); {
		case half == high && surrogate(v[min(i+escape, len(v)):]) == low:
			i += 2*escape - 1
		case half != 0:
			fixed = append(append(fixed, v[done:i]...), `\ufffd`...)
			done, i = i+escape, i+escape-1
		default:
			i++ // the escaped character
		}
	}
	if done == 0 {
		return v
	}
	return append(fixed, v[done:]...)
}

// The halves of a surrogate pair.
const (
	high = iota + 1
	low
)

// surrogate returns which half of a pair a text begins with as an escape; 0 for none.
func surrogate(text []byte) int {
	if len(text) < escape || text[0] != '\\' || text[1] != 'u' || text[2]|0x20 != 'd' {
		return 0
	}
	switch c := text[3] | 0x20; {
	case c == '8' || c == '9' || c == 'a' || c == 'b':
		return high
	case c >= 'c' && c <= 'f':
		return low
	}
	return 0
}

// Joiner decodes the pieces of a text that a server streams. A character that is divided between two pieces is whole.
type Joiner struct{ held []byte }

// Add returns the text of the next piece, a JSON string, without the half of a character at its end. It returns "" for any
// other value.
func (j *Joiner) Add(piece topics.Raw) string {
	piece = bytes.TrimSpace(piece)
	if len(piece) < 2 || piece[0] != '"' {
		return ""
	}
	body := append(j.held, piece[1:len(piece)-1]...)
	n := len(body) - held(body)
	j.held = bytes.Clone(body[n:])
	return unquoted(body[:n])
}

// End returns the half of a character that is left, as U+FFFD.
func (j *Joiner) End() string {
	rest := j.held
	j.held = nil
	return unquoted(rest)
}

func unquoted(body []byte) string {
	quoted := append(append([]byte{'"'}, WellFormed(body)...), '"')
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return string(text)
}

// held returns the length of the half of a character at the end of a text.
func held(body []byte) int {
	if at := len(body) - escape; at >= 0 && surrogate(body[at:]) == high && !escaped(body[:at]) {
		return escape
	}
	for n := 1; n < utf8.UTFMax && n <= len(body); n++ {
		if tail := body[len(body)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			break
		}
	}
	return 0
}

// escaped reports whether a backslash after the text is escaped.
func escaped(text []byte) bool {
	n := len(text) - len(bytes.TrimRight(text, `\`))
	return n%2 == 1
}
