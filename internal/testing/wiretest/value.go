package wiretest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// digest is a hash of bytes that the oracle does not keep.
type digest [16]byte

func digestOf(parts ...[]byte) digest {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	return digest(h.Sum(nil)[:16])
}

// member is a name and a value of an object. The value has no white space around it.
type member struct {
	name string
	raw  json.RawMessage
}

var (
	errNotObject = errors.New("wiretest: value is not an object")
	errNotArray  = errors.New("wiretest: value is not an array")
	errNotJSON   = errors.New("wiretest: value is not JSON")
	errUTF8      = errors.New("wiretest: value is not UTF-8")
)

// validate returns an error for bytes that are not a JSON value in UTF-8. The functions below need validated values or parts
// of them.
func validate(raw []byte) error {
	switch {
	case !utf8.Valid(raw):
		return errUTF8
	case !json.Valid(raw):
		return errNotJSON
	default:
		return nil
	}
}

// members returns the members of an object without decoding their values.
func members(raw []byte) ([]member, error) {
	var out []member
	err := parts(raw, '{', errNotObject, func(part []byte) {
		end := skipValue(part, 0)
		name := string(part[1 : end-1])
		if strings.ContainsRune(name, '\\') {
			_ = json.Unmarshal(part[:end], &name)
		}
		value := bytes.TrimLeft(part[end:], " \t\r\n")
		out = append(out, member{name: name, raw: trimmed(value[1:])}) // after the colon
	})
	return out, err
}

// elements returns the elements of an array without decoding them.
func elements(raw []byte) ([]json.RawMessage, error) {
	var out []json.RawMessage
	err := parts(raw, '[', errNotArray, func(part []byte) { out = append(out, part) })
	return out, err
}

func trimmed(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// parts calls each with the parts between the commas of an object or array. encoding/json has already checked the value,
// so that counting brackets is enough.
func parts(raw []byte, open byte, otherwise error, each func([]byte)) error {
	raw = trimmed(raw)
	if len(raw) == 0 || raw[0] != open {
		return otherwise
	}
	inner := trimmed(raw[1 : len(raw)-1])
	for start := 0; start < len(inner); {
		end := start
		for end < len(inner) && inner[end] != ',' {
			end = skipValue(inner, end)
		}
		each(trimmed(inner[start:end]))
		start = end + 1
	}
	return nil
}

// skipValue returns the index after the string, object, array or other token that starts at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// firstValue returns the first JSON value of an input record. Java readers ignore text after it.
func firstValue(raw []byte) []byte {
	if json.Valid(raw) {
		return raw
	}
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&first) != nil {
		return raw
	}
	return first
}

// object has the members of an object by name. If a name is repeated, the last member counts, as in Java.
type object map[string]json.RawMessage

// objectOf decodes the object in a record.
func objectOf(raw []byte) (object, error) {
	if err := validate(raw); err != nil {
		return nil, err
	}
	return objectIn(raw)
}

// objectIn decodes an object of a validated value.
func objectIn(raw []byte) (object, error) {
	ms, err := members(raw)
	if err != nil {
		return nil, err
	}
	o := make(object, len(ms))
	for _, m := range ms {
		o[m.name] = m.raw
	}
	return o, nil
}

// raw returns the value of the first of the names that is present and not null, nil if there is none.
func (o object) raw(names ...string) json.RawMessage {
	for _, n := range names {
		if v := o[n]; len(v) > 0 && !isNull(v) {
			return v
		}
	}
	return nil
}

// text returns the string of the first of the names, nil if there is none or the value is not a string.
func (o object) text(names ...string) *string {
	v := o.raw(names...)
	if len(v) == 0 || v[0] != '"' {
		return nil
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return nil
	}
	return &s
}

// number returns the number of the first of the names, nil if there is none.
func (o object) number(names ...string) *float64 {
	v := o.raw(names...)
	var f float64
	if len(v) == 0 || json.Unmarshal(v, &f) != nil {
		return nil
	}
	return &f
}

// list returns the array of the first of the names, nil if there is none.
func (o object) list(names ...string) []json.RawMessage {
	es, err := elements(o.raw(names...))
	if err != nil {
		return nil
	}
	return es
}

func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// compact returns raw without white space between tokens. Bytes that are not JSON are returned unchanged.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// withoutTimes returns raw, compact, with every time replaced by 0, because times may differ when the same record is written
// again after a crash.
func withoutTimes(raw []byte) []byte {
	var b bytes.Buffer
	if validate(raw) != nil || writeWithoutTimes(&b, raw, 0) != nil {
		return raw
	}
	return b.Bytes()
}

// maxTimesDepth is the depth to which times are replaced. It is more than the nesting depth of the pipeline's own fields
// (enriched: latest_input, metadata, tool_results, element, field).
const maxTimesDepth = 8

func writeWithoutTimes(b *bytes.Buffer, raw []byte, depth int) error {
	switch {
	case depth > maxTimesDepth:
		b.Write(compact(raw))
	case len(raw) > 0 && raw[0] == '{':
		ms, err := members(raw)
		if err != nil {
			return err
		}
		b.WriteByte('{')
		for _, m := range ms {
			fmt.Fprintf(b, "%q:", m.name)
			if m.name == "timestamp" || m.name == "deadline_ms" {
				b.WriteByte('0')
			} else if err := writeWithoutTimes(b, m.raw, depth+1); err != nil {
				return err
			}
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case len(raw) > 0 && raw[0] == '[':
		es, err := elements(raw)
		if err != nil {
			return err
		}
		b.WriteByte('[')
		for _, e := range es {
			if err := writeWithoutTimes(b, e, depth+1); err != nil {
				return err
			}
			b.WriteByte(',')
		}
		b.WriteByte(']')
	default:
		b.Write(raw)
	}
	return nil
}

func blank(s *string) bool { return s == nil || strings.TrimSpace(*s) == "" }

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// quote returns a JSON string with only the required escapes; by default, encoding/json also escapes <, > and &.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
