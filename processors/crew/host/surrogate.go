package host

import (
	"strconv"
	"unicode/utf16"
)

// paired replaces halves of surrogate pairs in the escapes of a JSON text by U+FFFD, in place. Agents that are written in
// JavaScript write such halves when they cut a text between the two. A record cannot hold them.
func paired(line []byte) []byte {
	for i := 0; i+1 < len(line); i++ {
		if line[i] != '\\' {
			continue
		}
		if first, ok := escaped(line[i:]); !ok {
			i++ // the escape of one character, such as \"
		} else if !utf16.IsSurrogate(first) {
			i += escapeSize - 1
		} else if second, ok := escaped(line[i+escapeSize:]); ok && utf16.DecodeRune(first, second) != '\uFFFD' {
			i += 2*escapeSize - 1
		} else {
			copy(line[i:], `\ufffd`)
			i += escapeSize - 1
		}
	}
	return line
}

const escapeSize = len(`\ufffd`)

// escaped is the unit of UTF-16 that an escape at the beginning of a text stands for.
func escaped(text []byte) (unit rune, ok bool) {
	if len(text) < escapeSize || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:escapeSize]), 16, 16)
	return rune(n), err == nil
}
