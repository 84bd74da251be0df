package fold

import (
	"bytes"
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// A producer that cuts a text by UTF-16 units can cut a pair of surrogates, and write each half as an escape. Joined
// texts are kept as they were escaped, so two halves that meet are a pair again; what stays alone is replaced.

const replacement = "fffd"

// mended returns v with each lone surrogate escape replaced by U+FFFD: a copy, or v itself if it has no surrogates.
func mended(v topics.Raw) (m topics.Raw, copied bool) {
	if !escapesSurrogate(v) {
		return v, false
	}
	v = slices.Clone(v)
	mend(v)
	return v, true
}

// escapesSurrogate reports whether v may hold an escaped surrogate.
func escapesSurrogate(v []byte) bool {
	return bytes.Contains(v, []byte(`\ud`)) || bytes.Contains(v, []byte(`\uD`))
}

// mend replaces each lone surrogate escape in valid JSON by U+FFFD, which is as long.
func mend(b []byte) {
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

// escapedUnit reads \uXXXX at the start of b.
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
