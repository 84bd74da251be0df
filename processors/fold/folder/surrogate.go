package folder

import (
	"bytes"
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// A producer that splits a text between UTF-16 code units can split a surrogate pair and write each half as an escape.
// Texts are joined with their escapes, so that two halves become a pair again. A half that stays alone is replaced.

const replacement = "fffd"

// withoutLoneSurrogates replaces each lone surrogate escape by U+FFFD, in a copy. It returns v itself if v has no surrogate escapes.
func withoutLoneSurrogates(v topics.Raw) (m topics.Raw, copied bool) {
	if !escapesSurrogate(v) {
		return v, false
	}
	v = slices.Clone(v)
	replaceLoneSurrogates(v)
	return v, true
}

// escapesSurrogate reports whether v may contain an escaped surrogate.
func escapesSurrogate(v []byte) bool {
	return bytes.Contains(v, []byte(`\ud`)) || bytes.Contains(v, []byte(`\uD`))
}

// replaceLoneSurrogates replaces each lone surrogate escape in valid JSON by the escape of U+FFFD, which has the same length, in place.
func replaceLoneSurrogates(b []byte) {
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '\\')
		if n < 0 {
			return
		}
		i += n
		unit, ok := escapedUnit(b[i:])
		switch {
		case !ok:
			i += 2
		case isHigh(unit) && followsLow(b[i+6:]):
			i += 12
		case isHigh(unit) || isLow(unit):
			copy(b[i+2:], replacement)
			i += 6
		default:
			i += 6
		}
		if i >= len(b) {
			return
		}
	}
}

func followsLow(b []byte) bool {
	unit, ok := escapedUnit(b)
	return ok && isLow(unit)
}

func isHigh(unit uint16) bool { return unit>>10 == 0xd800>>10 }
func isLow(unit uint16) bool  { return unit>>10 == 0xdc00>>10 }

// escapedUnit decodes \uXXXX at the start of b.
func escapedUnit(b []byte) (unit uint16, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		digit, ok := hexDigit(c)
		if !ok {
			return 0, false
		}
		unit = unit<<4 | uint16(digit)
	}
	return unit, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
