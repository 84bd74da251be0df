package invoke

// respace appends a valid JSON value with other white space between its tokens: one space after each comma and colon if
// spaced, otherwise none. The tokens are not changed.
func respace(dst, value []byte, spaced bool) []byte {
	for i := 0; i < len(value); i++ {
		switch b := value[i]; b {
		case ' ', '\t', '\r', '\n':
		case ',', ':':
			dst = append(dst, b)
			if spaced {
				dst = append(dst, ' ')
			}
		case '"':
			end := closingQuote(value, i)
			dst = append(dst, value[i:end]...)
			i = end - 1
		default:
			dst = append(dst, b)
		}
	}
	return dst
}

// closingQuote returns the index after the string that begins at open.
func closingQuote(value []byte, open int) int {
	for i := open + 1; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(value)
}
