package folder

import (
	"bytes"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// The reference implementation of fold is written in Python. Which values are false, which ids are equal, and which
// values can be an id therefore follows Python.

// falsy reports whether the value is false in Python. Nil is falsy.
func falsy(v topics.Raw) bool {
	if len(v) == 0 {
		return true
	}
	switch v[0] {
	case 'n', 'f':
		return true
	case 't':
		return false
	case '"':
		return len(v) == 2
	case '{', '[':
		return len(trimSpace(v[1:len(v)-1])) == 0
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return err == nil && f == 0
}

// hashable reports whether the value can be an id: any value but an array or an object.
func hashable(v topics.Raw) bool { return !isObject(v) && !isArray(v) }

// appendKey appends a text that is the same for all ids that are equal in Python: 1, 1.0 and true are equal, "1" differs.
// An absent id equals null.
func appendKey(dst []byte, id topics.Raw) []byte {
	if isNull(id) {
		return append(dst, 'n')
	}
	switch id[0] {
	case '"':
		dst = append(dst, '"')
		if bytes.IndexByte(id, '\\') < 0 {
			return append(dst, id[1:len(id)-1]...)
		}
		dst, _ = jsontext.AppendUnquote(dst, id)
		return dst
	case 't':
		return append(dst, '1')
	case 'f':
		return append(dst, '0')
	}
	return append(dst, number(string(id))...)
}

// number returns one text for all literals of the same number. Integers are exact, other numbers are converted to a
// float64.
func number(literal string) string {
	if !strings.ContainsAny(literal, ".eE") {
		if literal == "-0" {
			return "0"
		}
		return literal
	}
	f, err := strconv.ParseFloat(literal, 64)
	if errors.Is(err, strconv.ErrRange) && f != 0 {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	if whole, accuracy := big.NewFloat(f).Int(nil); accuracy == big.Exact {
		return whole.String()
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// typeName converts an event's type to text as Python's str does for scalars. An array or object is converted to JSON.
func typeName(v topics.Raw) string {
	if falsy(v) {
		return ""
	}
	switch v[0] {
	case '"':
		return unquote(v)
	case 't':
		return "True"
	case '{', '[':
		return string(v)
	}
	if !bytes.ContainsAny(v, ".eE") {
		return string(v)
	}
	f, _ := strconv.ParseFloat(string(v), 64)
	return floatText(f)
}

func floatText(f float64) string {
	text := strconv.FormatFloat(f, 'e', -1, 64)
	_, exponent, ok := strings.Cut(text, "e")
	if !ok {
		return strings.ToLower(strings.TrimPrefix(text, "+")) // Python writes infinities in lower case
	}
	if n, _ := strconv.Atoi(exponent); n < -4 || n >= 16 {
		return text
	}
	text = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
