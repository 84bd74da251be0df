package text

import "unicode/utf8"

// Count returns the size of a text in the limit's unit.
func (l Limit) Count(s string) int {
	switch l.Unit {
	case Runes:
		return utf8.RuneCountInString(s)
	case UTF16:
		n := 0
		for _, r := range s {
			n++
			if r > 0xFFFF {
				n++ // a surrogate pair
			}
		}
		return n
	default:
		return len(s)
	}
}

// Fits reports whether a text is within the limit.
func (l Limit) Fits(s string) bool { return l.Max <= 0 || l.Count(s) <= l.Max }
