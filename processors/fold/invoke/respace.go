package invoke

// respace appends a valid JSON value with blanks between its tokens as asked for: one behind each comma and colon, or
// none. The tokens themselves stay as they are, byte for byte.
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

// closingQuote is the index behind the string that begins at open.
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
