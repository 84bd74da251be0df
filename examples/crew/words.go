package main

import (
	"errors"
	"strings"
	"unicode"
)

var errQuote = errors.New("a quote is not closed")

// words divides a command line at white space outside quotes, as a shell does: a backslash stands for the next character, but not in
// single quotes. There are no variables and no patterns.
func words(line string) (list []string, err error) {
	var word strings.Builder
	begun, quote, escaped := false, rune(0), false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && unicode.IsSpace(r):
			if begun {
				list = append(list, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, errQuote
	}
	if begun {
		list = append(list, word.String())
	}
	return list, nil
}
