package fold

import (
	"bytes"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// The vocabulary comes from Python: which values are nothing, equal, or can be an id is what Python says.

// falsy reports whether Python takes the value for false; nothing is falsy.
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

// hashable reports whether the value can be an id: arrays and objects cannot.
func hashable(v topics.Raw) bool { return !isObject(v) && !isArray(v) }

// appendKey appends a text that is the same for all ids which are equal: 1, 1.0 and true are, "1" is another. None and
// null are one id.
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

// number is one text for all literals of one number: integers exactly, all else as a double.
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

// typeName is a type as text, as Python's str gives it for scalars; an array or object is its JSON.
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
		return strings.ToLower(strings.TrimPrefix(text, "+")) // an infinity, which Python writes small
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
